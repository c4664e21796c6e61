//! `duehook listen`: answers by script, verifies signatures, logs every request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The known answer of spec/engine.md, Signing.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SIGNED: &str = "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\nwebhook-timestamp: 1614265330\r\n\
webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\r\n";
const BODY: &str = "{\"test\": 2432232314}";

/// A receiver on a free port, and its address.
fn listen(log: &Path, arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(["listen", "--listen", "127.0.0.1:0", "--log"])
        .arg(log)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped"))
        .read_line(&mut first)
        .expect("a line");
    let address = first
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    (
        child,
        address
            .unwrap_or_else(|| panic!("no address in `{first}`"))
            .to_owned(),
    )
}

/// Posts and gives the status line back; empty where the connection was closed.
fn post(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "POST /hook HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn lines(log: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(log).expect("a log");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn each_message_is_answered_by_the_script_from_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("seen.jsonl");
    let (mut child, address) = listen(
        &log,
        &["--answer", "500,503:retry-after=2,200", "--requests", "6"],
    );
    let mut statuses = Vec::new();
    for message in ["a", "b", "a", "a", "b", "a"] {
        let headers = format!("webhook-id: {message}\r\nduehook-attempt: atmpt_{message}; n=7\r\n");
        let answer = post(&address, &headers, "{}");
        assert_eq!(
            answer.contains("retry-after: 2"),
            answer.starts_with("HTTP/1.1 503"),
            "{answer}"
        );
        statuses.push(answer.get(9..12).unwrap_or_default().to_owned());
    }
    assert_eq!(statuses, ["500", "500", "503", "200", "503", "200"]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let seen = lines(&log);
    assert_eq!(seen.len(), 6);
    assert_eq!(
        (&seen[0]["message_id"], &seen[0]["attempt_id"]),
        (&"a".into(), &"atmpt_a".into())
    );
    assert_eq!(
        (&seen[0]["attempt_no"], &seen[0]["status"]),
        (&7.into(), &500.into())
    );
    assert!(
        seen.iter()
            .all(|line| line["answered_ms"].as_f64() >= line["arrival_ms"].as_f64())
    );
    assert_eq!(
        seen[0]["body_sha256"],
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[test]
fn signatures_are_judged_and_a_wrong_one_is_exit_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("seen.jsonl");
    let (mut child, address) = listen(&log, &["--secret", SECRET, "--requests", "4"]);
    post(&address, SIGNED, BODY);
    post(&address, &SIGNED.replace("webhook-", "svix-"), BODY);
    post(&address, SIGNED, "{}");
    post(&address, "", BODY);
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    let verdicts: Vec<_> = lines(&log)
        .iter()
        .map(|line| line["signature"].to_string())
        .collect();
    // The known answer is years old: its signature fits, its timestamp does not.
    assert_eq!(verdicts, ["\"stale\"", "\"stale\"", "\"invalid\"", "\"absent\""]);
}

#[test]
fn a_closed_connection_is_in_the_log_without_a_status() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("seen.jsonl");
    let (mut child, address) = listen(&log, &["--answer", "close", "--requests", "1"]);
    assert_eq!(post(&address, "", "{}"), "");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let seen = lines(&log);
    assert!(seen[0]["status"].is_null() && seen[0]["answered_ms"].is_null());
}

#[test]
fn a_wrong_script_or_key_is_a_wrong_command_line() {
    for arguments in [
        ["--answer", "99"],
        ["--answer", "later"],
        ["--secret", "whsec_???"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_duehook"))
            .arg("listen")
            .args(arguments)
            .output();
        assert_eq!(output.expect("it runs").status.code(), Some(64), "{arguments:?}");
    }
}
