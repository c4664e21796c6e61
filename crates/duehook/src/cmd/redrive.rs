//! `duehook redrive`: opens the next delivery where the last one is dead, through the API of the running server.

use crate::client::{Client, ClientError, ServerArgs, escape};
use crate::exit::Exit;
use crate::ui;
use serde_json::{Value, json};

/// Dead deliveries asked for by one call.
const BATCH: u64 = 10_000;

/// Send again what is dead: a message's deliveries, or all of an endpoint
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    duehook redrive msg_…                   wherever it is dead\n  \
    duehook redrive msg_… ep_…              to this endpoint alone\n  \
    duehook redrive --endpoint ep_…         everything dead at this endpoint, oldest first\n\n\
    A redrive opens a new delivery with its own count of attempts, due now and paced like any other.")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["message", "all_of"])))]
pub(crate) struct Args {
    /// The message: its id
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
    /// The endpoint: id or uid
    #[arg(value_name = "ENDPOINT", requires = "message")]
    endpoint: Option<String>,
    /// Everything dead at this endpoint: its id
    #[arg(long = "endpoint", value_name = "ENDPOINT")]
    all_of: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", requires = "all_of", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Exit {
    let done = match (&args.message, &args.all_of) {
        (_, Some(endpoint)) => all(&args, endpoint),
        (Some(message), None) => one(&args, message),
        (None, None) => Ok(Exit::Usage),
    };
    done.unwrap_or_else(|error| ui::fail(Exit::Problem, &error))
}

fn one(args: &Args, message: &str) -> Result<Exit, ClientError> {
    let client = Client::new(&args.server)?;
    let body = args
        .endpoint
        .as_ref()
        .map_or_else(|| json!({}), |endpoint| json!({ "endpoint": endpoint }));
    let answer = client.post(&format!("/duehook/msg/{}/redrive", escape(message)), &body)?;
    if args.json {
        ui::say(answer);
        return Ok(Exit::Clean);
    }
    let rows = |field: &str| answer[field].as_array().cloned().unwrap_or_default();
    for row in rows("redriven") {
        let endpoint = row["endpointId"].as_str().unwrap_or_default();
        ui::say(format_args!(
            "{endpoint}: delivery {} is due now",
            row["deliveryNo"]
        ));
    }
    for row in rows("skipped") {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        ui::note(format_args!(
            "{}: left alone: {}",
            text("endpointId"),
            text("why")
        ));
    }
    if rows("redriven").is_empty() {
        ui::note("nothing was dead");
    }
    Ok(Exit::Clean)
}

fn all(args: &Args, endpoint: &str) -> Result<Exit, ClientError> {
    let client = Client::new(&args.server)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut total = 0;
    while left > 0 {
        let path = format!("/duehook/endpoint/{}/redrive", escape(endpoint));
        let answer = client.post(&path, &json!({ "limit": left.min(BATCH) }))?;
        let redriven = answer["redriven"].as_u64().unwrap_or(0);
        total += redriven;
        left = left.saturating_sub(redriven);
        // A call that moved nothing will not move anything next time either.
        if answer["done"] == Value::Bool(true) || redriven == 0 {
            break;
        }
        ui::note(format_args!("{total} so far"));
    }
    if args.json {
        ui::say(json!({ "redriven": total }));
    } else {
        ui::say(format_args!("{endpoint}: {total} deliveries are due now"));
    }
    Ok(Exit::Clean)
}
