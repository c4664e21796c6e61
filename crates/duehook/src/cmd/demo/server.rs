//! The demo's server: this same program as a child process, so that it can be killed like any other.

use contract::Duration;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How often something that is awaited is looked at.
const POLL: Duration = Duration::from_ms(10);

/// What of the demo could not be done at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// A file, a socket or a process.
    #[error("{what}")]
    Io { what: String, source: std::io::Error },
    /// The server answered otherwise than it should.
    #[error("{0}")]
    Api(String),
    /// Something awaited did not come.
    #[error("{what} did not happen within {within}")]
    Late { what: String, within: Duration },
}

impl DemoError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Waits until something is so, by looking.
pub(super) fn until(what: &str, within: Duration, mut so: impl FnMut() -> bool) -> Result<(), DemoError> {
    let polls = within.as_ms() / POLL.as_ms();
    for _ in 0..polls {
        if so() {
            return Ok(());
        }
        std::thread::sleep(POLL.to_std());
    }
    Err(DemoError::Late {
        what: what.to_owned(),
        within,
    })
}

/// A server in a process of its own. Dropping it kills it.
pub(super) struct Server {
    program: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    token: String,
    child: Option<Child>,
}

impl Server {
    /// Prepares a server on a free port, with its store, contract and log in `folder`.
    pub(super) fn new(folder: &Path, token: &str) -> Result<Self, DemoError> {
        let program = std::env::current_exe().map_err(DemoError::io("this program cannot find itself"))?;
        // The port is free now; the restart must find the same one, so that it is chosen here.
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(DemoError::io("no port is free"))?;
        let address = listener
            .local_addr()
            .map_err(DemoError::io("a socket has no address"))?;
        Ok(Self {
            program,
            folder: folder.to_owned(),
            address,
            token: token.to_owned(),
            child: None,
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The store, as `--store` takes it.
    pub(super) fn store(&self) -> String {
        format!("sqlite:{}", self.folder.join("duehook.db").display())
    }

    /// This program with arguments, silent, in the demo's folder.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("DUEHOOK_TOKEN", &self.token)
            .stdin(Stdio::null());
        // Whatever the user's own server is configured with does not concern the demo's.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("DUEHOOK_") && text != "DUEHOOK_TOKEN" {
                command.env_remove(&name);
            }
        }
        command
    }

    /// Starts the server and waits until it answers.
    pub(super) fn start(&mut self) -> Result<(), DemoError> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("server.log"))
            .map_err(DemoError::io("the server's log cannot be written"))?;
        let errors = log
            .try_clone()
            .map_err(DemoError::io("the server's log cannot be written"))?;
        let (store, listen) = (self.store(), self.address.to_string());
        let contract = self.folder.join("contract.toml").display().to_string();
        let child = self
            .command(&[
                "serve",
                "--store",
                &store,
                "--listen",
                &listen,
                "--contract",
                &contract,
                "--allow-net",
                "127.0.0.0/8",
            ])
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(DemoError::io("the server cannot be started"))?;
        self.child = Some(child);
        let url = format!("http://{}/api/v1/health", self.address);
        let up = until("the server's first answer", Duration::from_secs(10), || {
            ureq::get(&url).call().is_ok() || self.has_ended()
        });
        if self.has_ended() {
            return Err(DemoError::Api(format!(
                "the server ended at once:\n{}",
                self.last_words()
            )));
        }
        up
    }

    fn has_ended(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// The end of the server's log.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(15).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// SIGKILL: no goodbye, no flush.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child
            .kill()
            .and_then(|()| child.wait())
            .map_err(DemoError::io("the server cannot be killed"))?;
        Ok(())
    }

    /// SIGTERM, and waits for its end.
    pub(super) fn stop(&mut self) -> Result<ExitStatus, DemoError> {
        let mut child = self
            .child
            .take()
            .ok_or_else(|| DemoError::Api("no server runs".to_owned()))?;
        let pid = i32::try_from(child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| DemoError::Api("the server has no process id".to_owned()))?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| DemoError::io("the server cannot be stopped")(error.into()))?;
        let mut status = None;
        let ended = until("the server's end after SIGTERM", Duration::from_secs(10), || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        ended?;
        status.ok_or_else(|| DemoError::Api("the server's end was not seen".to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
