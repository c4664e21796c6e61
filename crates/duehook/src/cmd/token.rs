//! `duehook token`: makes, lists and revokes tokens, on the store itself. A running server owns its store, so there it is
//! the API's matter.

use crate::config::{STORE, StoreRef};
use crate::exit::Exit;
use crate::ui;
use store::Store;
use store::sqlite::SqliteStore;

/// Make, list and revoke API tokens
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  duehook token create --name billing\n  duehook token list\n  duehook token revoke tok_…"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// The store
    #[arg(long, global = true, default_value = STORE, env = "DUEHOOK_STORE", value_name = "STORE")]
    store: StoreRef,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Make a token and print it, once
    Create {
        /// A name for people; it stands in the ledger
        #[arg(long, default_value = "cli")]
        name: String,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token
    Revoke {
        /// Its id
        id: contract::TokenId,
    },
}

pub(crate) fn run(args: Args) -> Exit {
    match act(&args) {
        Ok(()) => Exit::Clean,
        Err(error) => ui::fail(Exit::Problem, &*error),
    }
}

fn act(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = &args.store.0;
    let store = match &args.what {
        What::List => SqliteStore::open_read_only(path)?,
        What::Create { .. } | What::Revoke { .. } => {
            SqliteStore::open(path, store::sqlite::Options::default())?
        }
    };
    let now = super::serve::now()?;
    runtime.block_on(async {
        match &args.what {
            What::Create { name } => {
                let token = server::new_token(name, now)?;
                let id = token.row.id;
                store.put_token(token.row).await?;
                if args.json {
                    ui::say(serde_json::json!({ "id": id, "name": name, "token": token.text }));
                } else {
                    ui::say(&token.text);
                    ui::note(format_args!(
                        "{id} ({name}): shown this once; export DUEHOOK_TOKEN=…"
                    ));
                }
            }
            What::List => list(&store.tokens().await?, args.json),
            What::Revoke { id } => {
                store.revoke_token(*id, now).await?;
                ui::note(format_args!("{id}: revoked"));
            }
        }
        Ok(())
    })
}

fn list(tokens: &[store::Token], json: bool) {
    if json {
        let rows: Vec<_> = tokens
            .iter()
            .map(|token| serde_json::json!({ "id": token.id, "name": token.name, "createdAt": token.created_at, "revokedAt": token.revoked_at }))
            .collect();
        return ui::say(serde_json::Value::Array(rows));
    }
    let mut table = ui::table(&["TOKEN", "NAME", "CREATED", "STATE"]);
    for token in tokens {
        let state = if token.revoked_at.is_some() {
            "revoked"
        } else {
            "good"
        };
        table.add_row([
            token.id.to_string(),
            token.name.clone(),
            server::rfc3339(token.created_at),
            state.to_owned(),
        ]);
    }
    ui::say(table);
}
