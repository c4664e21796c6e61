//! The processes of the harness: the server that is killed, and the receivers that are not.

use super::api::{self, Answer};
use super::judge::Request;
use crate::{Error, Result};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The bearer token of the run.
const TOKEN: &str = "crash-harness-token-0123456789abcdef0123456789";
/// After so long a start has failed.
const PATIENCE: Duration = Duration::from_secs(15);

fn failed(command: &str, reason: impl std::fmt::Display) -> Error {
    Error::Program {
        command: command.into(),
        reason: reason.to_string(),
    }
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed("bind", error))?;
    listener.local_addr().map_err(|error| failed("bind", error))
}

fn spawn(binary: &Path, args: &[String]) -> Result<Child> {
    Command::new(binary)
        .args(args)
        .env("DUEHOOK_TOKEN", TOKEN)
        .env("DUEHOOK_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed("duehook", error))
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a start takes is what is measured"
)]
fn until(mut ready: impl FnMut() -> bool) -> Option<Duration> {
    let start = std::time::Instant::now();
    while start.elapsed() < PATIENCE {
        if ready() {
            return Some(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// `duehook serve` on one store file, whatever happens to it.
pub(crate) struct Node {
    binary: PathBuf,
    folder: PathBuf,
    running: Mutex<Option<(Child, SocketAddr)>>,
}

impl Node {
    /// Not yet started.
    pub(crate) fn new(binary: &Path, folder: &Path) -> Self {
        let running = Mutex::new(None);
        Self {
            binary: binary.into(),
            folder: folder.into(),
            running,
        }
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.folder.join("duehook.db").display())
    }

    /// Starts it and waits until it answers; how long that took.
    pub(crate) fn start(&self) -> Result<Duration> {
        let address = free_address()?;
        let contract = self.folder.join("contract.toml").display().to_string();
        let args = [
            "serve",
            "--store",
            &self.store(),
            "--listen",
            &address.to_string(),
            "--contract",
            &contract,
            "--allow-net",
            "127.0.0.0/8",
        ];
        let child = spawn(&self.binary, &args.map(str::to_owned))?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((child, address));
        let up =
            || api::call(address, TOKEN, "GET", "/api/v1/health", "").is_ok_and(|answer| answer.status < 300);
        until(up).ok_or_else(|| failed("duehook serve", format!("does not answer after {PATIENCE:?}")))
    }

    /// Asks the server that runs now.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let address = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|(_, at)| *at);
        let address = address.ok_or_else(|| failed("duehook serve", "does not run"))?;
        api::call(address, TOKEN, method, path, body)
    }

    /// SIGKILL, and the remains are gathered.
    pub(crate) fn kill(&self) -> Result {
        let taken = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((mut child, _)) = taken else {
            return Ok(());
        };
        child.kill().map_err(|error| failed("kill", error))?;
        child.wait().map(drop).map_err(|error| failed("wait", error))
    }

    /// SIGTERM: it must end by itself with 0.
    pub(crate) fn stop(&self) -> Result {
        let taken = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((mut child, _)) = taken else {
            return Ok(());
        };
        crate::process::Run::new("kill")
            .args(&["-TERM", &child.id().to_string()])
            .go()?;
        let status = child.wait().map_err(|error| failed("wait", error))?;
        if status.success() {
            Ok(())
        } else {
            Err(failed("duehook serve", format!("after SIGTERM: {status}")))
        }
    }

    /// What audit and probe say of the store: nothing when both exit 0.
    pub(crate) fn judgements(&self) -> Vec<String> {
        let (store, ledger) = (self.store(), self.folder.join("ledger").display().to_string());
        let judges: [&[&str]; 3] = [
            &["audit", "--store", &store],
            &["ledger", "export", "--store", &store, "--out", &ledger],
            &["probe", "ledger", "--ledger", &ledger],
        ];
        judges
            .into_iter()
            .filter_map(|command| self.judge(command))
            .collect()
    }

    fn judge(&self, command: &[&str]) -> Option<String> {
        let shown = format!("duehook {}", command.join(" "));
        eprintln!("$ {shown}");
        match Command::new(&self.binary)
            .args(command)
            .stdin(Stdio::null())
            .output()
        {
            Ok(done) if done.status.success() => None,
            Ok(done) => {
                let said = [done.stdout, done.stderr].concat();
                Some(format!(
                    "{shown}: {}\n{}",
                    done.status,
                    String::from_utf8_lossy(&said)
                ))
            }
            Err(error) => Some(format!("{shown}: {error}")),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// `duehook listen` with a script and a log.
pub(crate) struct Receiver {
    child: Child,
    address: SocketAddr,
    name: &'static str,
    log: PathBuf,
}

impl Receiver {
    /// Starts it and waits until it takes connections.
    pub(crate) fn start(binary: &Path, folder: &Path, name: &'static str, script: &str) -> Result<Self> {
        let address = free_address()?;
        let log = folder.join(format!("{name}.jsonl"));
        let args = [
            "listen",
            "--listen",
            &address.to_string(),
            "--answer",
            script,
            "--log",
            &log.display().to_string(),
        ];
        let child = spawn(binary, &args.map(str::to_owned))?;
        let receiver = Self {
            child,
            address,
            name,
            log,
        };
        until(|| std::net::TcpStream::connect(address).is_ok())
            .map(|_| receiver)
            .ok_or_else(|| failed("duehook listen", format!("does not answer after {PATIENCE:?}")))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// What it logged so far; a line that is still being written is left out.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(Request::read).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
