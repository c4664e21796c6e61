//! `duehook endpoint`: list, add, and change the state of endpoints, through the API of the running server.

use crate::client::{Client, ClientError, ServerArgs, escape};
use crate::exit::Exit;
use crate::ui;
use serde_json::{Map, Value, json};

/// List, add, activate, drain or disable endpoints
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook endpoint add --app acme --create-app https://example.com/hook\n  \
    duehook endpoint list --app acme\n  \
    duehook endpoint drain ep_… --why 'they asked for a pause'\n  \
    duehook endpoint activate ep_…\n\n\
    Only an active endpoint receives. Draining holds what waits; disabling makes it dead, to be redriven.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List endpoints, of one application or of all
    List {
        /// The application: id or uid
        #[arg(long, value_name = "APP", env = "DUEHOOK_APP")]
        app: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Add an endpoint and print its signing secret
    Add(Add),
    /// Let it receive: what was held goes on, oldest first
    Activate(Change),
    /// Hold what waits and what comes; attempts in flight finish
    Drain(Change),
    /// Take nothing: what waits is dead, and can be redriven
    Disable(Change),
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Add {
    /// Where to send
    #[arg(value_name = "URL")]
    url: String,
    /// The application: id or uid
    #[arg(long, value_name = "APP", env = "DUEHOOK_APP")]
    app: String,
    /// Make the application when it does not exist
    #[arg(long)]
    create_app: bool,
    /// Your own name for the endpoint
    #[arg(long, value_name = "UID")]
    uid: Option<String>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// An event type it wants (may be given several times); none for all
    #[arg(long = "type", value_name = "TYPE")]
    event_types: Vec<String>,
    /// A channel it wants (may be given several times); none for all
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// At most so many starts a second
    #[arg(long, value_name = "N")]
    throttle_rate: Option<u16>,
    /// Start in this state
    #[arg(long, value_name = "STATE", value_parser = ["active", "draining", "disabled"], default_value = "active")]
    state: String,
    /// Its signing secret, whsec_… or whsk_…; made when it is not given
    #[arg(long, value_name = "SECRET", env = "DUEHOOK_SECRET", hide_env_values = true)]
    secret: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Change {
    /// The endpoint: its id; or its uid, with --app
    #[arg(value_name = "ENDPOINT")]
    endpoint: String,
    /// The application, where the endpoint is named by its uid
    #[arg(long, value_name = "APP", env = "DUEHOOK_APP")]
    app: Option<String>,
    /// Why: it stands in the ledger
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: Args) -> Exit {
    let done = match args.command {
        Command::List { app, common } => list(app.as_deref(), &common),
        Command::Add(add) => self::add(&add),
        Command::Activate(change) => set_state(&change, "active"),
        Command::Drain(change) => set_state(&change, "draining"),
        Command::Disable(change) => set_state(&change, "disabled"),
    };
    match done {
        Ok(()) => Exit::Clean,
        Err(error) => ui::fail(Exit::Problem, &error),
    }
}

fn list(app: Option<&str>, common: &Common) -> Result<(), ClientError> {
    let client = Client::new(&common.server)?;
    let apps = match app {
        Some(app) => vec![client.get(&format!("/app/{}", escape(app)))?],
        None => client.all("/app")?,
    };
    let mut rows = Vec::new();
    for app in &apps {
        let id = app["id"].as_str().unwrap_or_default();
        for mut endpoint in client.all(&format!("/app/{id}/endpoint"))? {
            endpoint["appId"] = app["id"].clone();
            endpoint["appName"] = app["uid"]
                .as_str()
                .map_or_else(|| app["name"].clone(), Value::from);
            rows.push(endpoint);
        }
    }
    if common.json {
        ui::say(Value::Array(rows));
        return Ok(());
    }
    if rows.is_empty() {
        ui::note("no endpoints yet: duehook endpoint add --app APP --create-app URL");
        return Ok(());
    }
    let mut table = ui::table(&["ENDPOINT", "APP", "STATE", "URL", "TYPES", "FAILING SINCE"]);
    for row in &rows {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let types = row["eventTypes"].as_array().map_or_else(
            || "all".to_owned(),
            |types| {
                types
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" ")
            },
        );
        let id = row["uid"]
            .as_str()
            .map_or_else(|| text("id"), |uid| format!("{} ({uid})", text("id")));
        table.add_row([
            id,
            text("appName"),
            text("state"),
            text("url"),
            types,
            text("failingSince"),
        ]);
    }
    ui::say(table);
    Ok(())
}

fn add(args: &Add) -> Result<(), ClientError> {
    let client = Client::new(&args.common.server)?;
    if args.create_app {
        let app = json!({ "name": args.app, "uid": args.app });
        client.post("/app?get_if_exists=true", &app)?;
    }
    let mut body = Map::new();
    body.insert("url".into(), json!(args.url));
    body.insert("state".into(), json!(args.state));
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(field.to_owned(), value);
        }
    };
    put("uid", args.uid.as_ref().map(|uid| json!(uid)));
    put("description", args.description.as_ref().map(|text| json!(text)));
    put(
        "eventTypes",
        (!args.event_types.is_empty()).then(|| json!(args.event_types)),
    );
    put(
        "channels",
        (!args.channels.is_empty()).then(|| json!(args.channels)),
    );
    put("throttleRate", args.throttle_rate.map(|rate| json!(rate)));
    put("secret", args.secret.as_ref().map(|secret| json!(secret)));
    let path = format!("/app/{}/endpoint", escape(&args.app));
    let mut made = client.post(&path, &body)?;
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    let secret = client.get(&format!("{path}/{id}/secret"))?;
    if args.common.json {
        made["secret"] = secret["key"].clone();
        ui::say(made);
        return Ok(());
    }
    ui::say(format_args!(
        "{id}  {}  {}",
        args.state,
        made["url"].as_str().unwrap_or_default()
    ));
    ui::say(format_args!(
        "secret {}",
        secret["key"].as_str().unwrap_or_default()
    ));
    ui::note(format_args!(
        "try it: duehook send --app {} --type test '{{\"hello\": \"world\"}}'",
        args.app
    ));
    Ok(())
}

fn set_state(change: &Change, state: &str) -> Result<(), ClientError> {
    let client = Client::new(&change.common.server)?;
    let id = match &change.app {
        Some(app) => {
            let endpoint = client.get(&format!(
                "/app/{}/endpoint/{}",
                escape(app),
                escape(&change.endpoint)
            ))?;
            endpoint["id"].as_str().unwrap_or_default().to_owned()
        }
        None => change.endpoint.clone(),
    };
    let mut body = json!({ "state": state });
    if let Some(why) = &change.why {
        body["why"] = json!(why);
    }
    let endpoint = client.patch(&format!("/duehook/endpoint/{}", escape(&id)), &body)?;
    if change.common.json {
        ui::say(endpoint);
    } else {
        let url = endpoint["url"].as_str().unwrap_or_default();
        ui::say(format_args!("{id} is {state}  {url}"));
        if state == "disabled" {
            ui::note(format_args!(
                "what waited is dead; once it is active again: duehook redrive --endpoint {id}"
            ));
        }
    }
    Ok(())
}
