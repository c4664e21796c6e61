//! `duehook serve`: the server. Puts the parts together; the settings are read in `config`, and what runs is in `store`,
//! `engine` and `server`.

mod keep;

use crate::config::{ConfigError, Options, Settings, Signatures};
use crate::exit::Exit;
use crate::ui;
use contract::{Contract, Instant};
use engine::clock::{Clock, SystemClock};
use engine::connector::{Connector, SystemResolver};
use engine::guard::Guard;
use engine::sign::SignatureHeaders;
use engine::wire::HttpWire;
use engine::{Engine, EngineHandle};
use server::{Config, Server};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use store::{Level, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Run the server: accept messages over HTTP, deliver them, retry by contract
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
duehook serve                                       store in duehook.db, listen on 127.0.0.1:8071\n  \
duehook serve --contract contract.toml              with a contract of your own (`duehook contract init`)\n  \
duehook serve --allow-net 127.0.0.0/8               deliver to this machine too\n\n\
SIGTERM ends it once what is in flight is settled; a second one ends it at once.")]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// A TOML file with these settings, the keys with `_` for `-`
    #[arg(long, value_name = "FILE", env = "DUEHOOK_CONFIG")]
    config: Option<PathBuf>,
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Open(#[from] store::sqlite::OpenError),
    #[error(transparent)]
    Store(#[from] store::StoreError),
    #[error(transparent)]
    Tls(#[from] engine::tls::TlsSetupError),
    #[error("DUEHOOK_TOKEN cannot be used: {0}")]
    Token(&'static str),
    #[error("cannot listen on {address}: choose another with --listen")]
    Listen {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    #[error("the machine does not let the server start")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(args: Args) -> Exit {
    let settings = match settings(args) {
        Ok(settings) => settings,
        Err(error) => return ui::fail(Exit::Usage, &error),
    };
    let contract = match settings.contract.as_deref().map(ui::read_contract).transpose() {
        Ok(contract) => contract,
        Err(error) => return ui::fail_contract(&error),
    };
    log(&settings);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ui::fail(Exit::Problem, &error),
    };
    match runtime.block_on(serve(&settings, contract)) {
        Ok(exit) => exit,
        Err(error) => ui::fail(Exit::Problem, &error),
    }
}

fn settings(args: Args) -> Result<Settings, ConfigError> {
    let file = args.config.as_deref().map(Options::read).transpose()?;
    args.options.over(file.unwrap_or_default()).settle()
}

fn log(settings: &Settings) {
    let filter = tracing_subscriber::EnvFilter::try_new(&settings.log)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second start in one process keeps the first log.
    let _ = if settings.log_json {
        builder.json().try_init()
    } else {
        builder.try_init()
    };
}

async fn serve(settings: &Settings, contract: Option<Contract>) -> Result<Exit, ServeError> {
    let mut stop = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = std::env::var("DUEHOOK_TOKEN").ok();
    if let Some(fault) = token.as_deref().and_then(server::fault_of_given) {
        return Err(ServeError::Token(fault));
    }
    let store = SqliteStore::open(&settings.store.0, store::sqlite::Options::default())?;
    let store: Arc<dyn Store> = store;
    let in_force = organisation(&*store, contract).await?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|source| ServeError::Listen {
            address: settings.listen,
            source,
        })?;
    let engine = start(settings, &store).await?;
    let verdict = keep::start(settings, &store);
    let config = Config {
        max_body: settings.max_body,
        token,
        ..Config::default()
    };
    let server = Server::new(Arc::clone(&store), engine.clone(), config, verdict).await?;
    ui::say(format_args!(
        "duehook listens on http://{}",
        listener.local_addr()?
    ));
    ui::say(format_args!("store {}, contract {in_force}", settings.store));
    if server.has_no_token() {
        ui::say("no token yet, so every call is refused: stop, type `duehook token create`, start again");
    }
    let (end, ended) = watch::channel(());
    let mut fatal = None;
    let serving = server.serve(listener, async move {
        let mut ended = ended;
        let _ = ended.changed().await;
    });
    tokio::pin!(serving);
    tokio::select! {
        _ = stop.recv() => {}
        _ = interrupt.recv() => {}
        reason = engine.fatal() => fatal = Some(reason),
        _ = &mut serving => {}
    }
    ui::say("stopping: what is in flight is settled first; a second signal stops at once");
    end.send_replace(());
    let finish = async {
        let shutdown = engine.shutdown(settings.shutdown_timeout).await;
        serving.await;
        shutdown
    };
    let shutdown = tokio::select! {
        shutdown = finish => shutdown,
        _ = stop.recv() => return Ok(Exit::Problem),
        _ = interrupt.recv() => return Ok(Exit::Problem),
    };
    store.close().await?;
    if let Some(reason) = fatal {
        ui::note(format_args!("error: the engine gave up: {reason}"));
        return Ok(Exit::Problem);
    }
    Ok(if shutdown.settled {
        Exit::Clean
    } else {
        Exit::Problem
    })
}

async fn start(settings: &Settings, store: &Arc<dyn Store>) -> Result<EngineHandle, ServeError> {
    let ca: Vec<PathBuf> = settings.ca_file.iter().cloned().collect();
    let tls = engine::tls::client_config(&ca)?;
    let connector = Connector::new(
        Guard::new(settings.allow_net.clone()),
        Arc::new(SystemResolver),
        tls,
    );
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new()?);
    let options = engine::Options {
        signature_headers: match settings.signatures {
            Signatures::Standard => SignatureHeaders::Standard,
            Signatures::Svix => SignatureHeaders::Svix,
            Signatures::Both => SignatureHeaders::Both,
        },
        ..engine::Options::default()
    };
    Ok(Engine::start(
        Arc::clone(store),
        Arc::new(HttpWire::new(connector)),
        options,
        clock,
    )
    .await?)
}

/// The organisation's contract: the one given, else the stored one, else the default preset, which is then stored.
async fn organisation(store: &dyn Store, given: Option<Contract>) -> Result<String, ServeError> {
    let name =
        |contract: &Contract, note: &str| format!("{} ({}{note})", contract.name, &contract.rev()[..12]);
    let (contract, note) = match (given, store.organisation_contract().await?) {
        (Some(contract), _) => (contract, ""),
        (None, Some(key)) => {
            let stored = store.contract(key).await?;
            let known = stored.and_then(|stored| Contract::from_canonical(&stored.canonical).ok());
            return known
                .map(|contract| name(&contract, ", from the store"))
                .ok_or_else(|| unreadable().into());
        }
        (None, None) => (
            preset()?,
            ", the default preset: `duehook contract show` tells what it means",
        ),
    };
    let key = store.put_contract(&contract.rev(), &contract.canonical()).await?;
    store.set_contract(Level::Organisation, Some(key)).await?;
    Ok(name(&contract, note))
}

fn unreadable() -> store::StoreError {
    store::StoreError::Corrupt {
        reason: "the organisation's contract cannot be read".to_owned(),
        source: None,
    }
}

fn preset() -> Result<Contract, store::StoreError> {
    let text = contract::preset("default").map_err(|_| unreadable())?.text;
    contract::parse(text, "default").map_err(|_| unreadable())
}

/// The wall clock, for commands that write to a store without an engine.
pub(super) fn now() -> Result<Instant, std::io::Error> {
    Ok(SystemClock::new()?.now().wall)
}
