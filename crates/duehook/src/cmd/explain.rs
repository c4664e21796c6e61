//! `duehook explain`: why each delivery of a message is where it is. Reads the store, also beside a running server; the
//! sentences are made in `server::explain`.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::ui;
use contract::{EndpointId, MessageId};
use server::explain::Explanation;
use store::Store;
use store::sqlite::SqliteStore;

/// Why has this not been delivered? One sentence a delivery, with its numbers
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  duehook explain msg_…\n  duehook explain msg_… ep_… --json")]
pub(crate) struct Args {
    /// The message
    message: MessageId,
    /// One endpoint of it
    endpoint: Option<EndpointId>,
    /// The store, also while a server runs on it
    #[arg(long, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Exit {
    match explain(&args) {
        Ok(explanation) => {
            show(&args, &explanation);
            Exit::Clean
        }
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn explain(args: &Args) -> Result<Explanation, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = SqliteStore::open_read_only(&args.store.0)?;
    let now = super::serve::now()?;
    runtime.block_on(async {
        let message = store.message_by_id(args.message).await?.ok_or_else(|| {
            format!(
                "there is no message {} in {}: check the id, or name the store with --store",
                args.message, args.store
            )
        })?;
        let endpoint = match args.endpoint {
            None => None,
            Some(id) => Some(
                store
                    .endpoint_by_id(id)
                    .await?
                    .ok_or_else(|| format!("there is no endpoint {id}"))?
                    .key,
            ),
        };
        Ok(server::explain::explain(&*store, &message, endpoint, now).await?)
    })
}

fn show(args: &Args, explanation: &Explanation) {
    if args.json {
        return ui::say(serde_json::to_string_pretty(explanation).unwrap_or_default());
    }
    ui::say(format_args!(
        "{} ({}), accepted {}",
        explanation.message, explanation.event_type, explanation.accepted_at
    ));
    if explanation.deliveries.is_empty() {
        ui::say("no delivery: no endpoint wanted it when it was accepted");
    }
    for delivery in &explanation.deliveries {
        ui::say(format_args!(
            "\n{} {} · delivery {} · {}\n  {}",
            delivery.endpoint, delivery.url, delivery.delivery_no, delivery.state, delivery.sentence
        ));
        if delivery.attempts.is_empty() {
            continue;
        }
        let mut table = ui::table(&["  ATTEMPT", "STARTED", "TOOK", "OUTCOME", "STATUS", "ERROR"]);
        for attempt in &delivery.attempts {
            table.add_row([
                format!("  {}", attempt.attempt_no),
                attempt.started_at.clone(),
                attempt
                    .took_ms
                    .map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
                attempt.outcome.to_owned(),
                attempt
                    .status
                    .map_or_else(|| "-".to_owned(), |status| status.to_string()),
                attempt.error.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        ui::say(table);
    }
}
