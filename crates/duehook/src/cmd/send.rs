//! `duehook send`: one message to an application, through the API of the running server.

use crate::client::{Client, ClientError, ServerArgs, escape};
use crate::exit::Exit;
use crate::ui;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;

/// Send a message through the running server
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook send --app acme --type order.paid '{\"order\": 17}'\n  \
    duehook send --app acme --type order.paid --file order.json --create-app\n  \
    jq -c . order.json | duehook send --app acme --type order.paid\n\n\
    The payload's text is sent to receivers byte for byte. Then: duehook explain MESSAGE")]
pub(crate) struct Args {
    /// The application: id or uid
    #[arg(long, value_name = "APP", env = "DUEHOOK_APP")]
    app: String,
    /// The event type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// The payload, a JSON object; `-` or nothing reads standard input
    #[arg(value_name = "PAYLOAD", conflicts_with = "file")]
    payload: Option<String>,
    /// Read the payload from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Your own id for the message; a second one with it is refused
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// A channel (may be given several times)
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// A key under which sending again gives the first answer
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Make the application when it does not exist
    #[arg(long)]
    create_app: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("{what} cannot be read")]
    Unreadable { what: String, source: std::io::Error },
    #[error("no payload; give it as an argument, with `--file FILE`, or on standard input")]
    NoPayload,
    #[error("the payload is not JSON: {source}\n  quote it for the shell: '{{\"order\": 17}}'")]
    NoJson { source: serde_json::Error },
    #[error(transparent)]
    Client(#[from] ClientError),
}

pub(crate) fn run(args: Args) -> Exit {
    match send(&args) {
        Ok(answer) => {
            if args.json {
                ui::say(answer);
            } else {
                let id = answer["id"].as_str().unwrap_or_default();
                ui::say(format_args!("accepted {id}"));
                ui::note(format_args!("where it stands: duehook explain {id}"));
            }
            Exit::Clean
        }
        Err(error @ (SendError::NoPayload | SendError::NoJson { .. })) => ui::fail(Exit::Usage, &error),
        Err(error) => {
            let unknown_app = matches!(&error, SendError::Client(client) if client.status() == Some(404));
            let exit = ui::fail(Exit::Problem, &error);
            if unknown_app && !args.create_app {
                ui::note("  to make the application on the way: --create-app");
            }
            exit
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    event_type: &'a str,
    payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    channels: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<Value>,
}

fn send(args: &Args) -> Result<Value, SendError> {
    let text = payload(args)?;
    let payload: &RawValue = serde_json::from_str(&text).map_err(|source| SendError::NoJson { source })?;
    let client = Client::new(&args.server)?;
    let message = Message {
        event_type: &args.event_type,
        payload,
        event_id: args.event_id.as_deref(),
        channels: &args.channels,
        application: args
            .create_app
            .then(|| json!({ "name": args.app, "uid": args.app })),
    };
    let path = format!("/app/{}/msg?with_content=false", escape(&args.app));
    Ok(client.post_with(&path, &message, args.idempotency_key.as_deref())?)
}

fn payload(args: &Args) -> Result<String, SendError> {
    if let Some(path) = &args.file {
        return std::fs::read_to_string(path).map_err(|source| SendError::Unreadable {
            what: path.display().to_string(),
            source,
        });
    }
    match args.payload.as_deref() {
        Some(text) if text != "-" => Ok(text.to_owned()),
        None if std::io::stdin().is_terminal() => Err(SendError::NoPayload),
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|source| SendError::Unreadable {
                what: "standard input".to_owned(),
                source,
            })?;
            Ok(text)
        }
    }
}
