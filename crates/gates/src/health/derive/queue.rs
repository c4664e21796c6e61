//! The queue round (spec/queue-round.md): each line on its own.

use super::facts::lines;
use super::{Failed, contract_bytes, cut, unusable};
use crate::files::{QueueFiles, read_text};
use contract::rounds::{DelayUnit, QueueRoundContract};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The report, without `inputs` and `build`.
pub(in super::super) fn appraise(files: &QueueFiles, now: i64) -> Result<Value, Failed> {
    let (bytes, name) = contract_bytes(&files.contract)?;
    let contract = QueueRoundContract::read(&bytes, &name).map_err(|error| unusable(&error))?;
    let channels = channels(files)?;
    let bytes = std::fs::read(&files.queue)
        .map_err(|error| Failed::Facts(format!("{}: cannot be read: {error}", files.queue.display())))?;
    // Lines are independent: one that is no text is malformed, and the others are judged.
    let text = bytes
        .split(|byte| *byte == b'\n')
        .map(|line| String::from_utf8(line.to_vec()).unwrap_or("\0".into()));
    let text = text.collect::<Vec<_>>().join("\n");
    let (mut results, mut malformed, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (number, line) in
        lines(&text).filter(|(_, line)| !line.bytes().all(|byte| byte == b' ' || byte == b'\t'))
    {
        match item(line).filter(|item| seen.insert(item.id.clone())) {
            Some(item) => results.push(judge(&contract, &channels, now, &item)),
            None => malformed.push(json!({ "line": number })),
        }
    }
    let count = |verdict: &str| results.iter().filter(|row| row["verdict"] == verdict).count();
    Ok(json!({
        "engine": "queue-appraiser", "delay_unit": contract.delay_unit.word(), "now": now, "items_total": results.len() + malformed.len(),
        "deliver": count("deliver"), "defer": count("defer"), "block": count("block"), "dead": count("dead"),
        "ok": malformed.is_empty(), "malformed_rows": malformed, "results": results,
    }))
}

fn channels(files: &QueueFiles) -> Result<BTreeMap<String, bool>, Failed> {
    let wrong = |what: String| Failed::Facts(format!("{}: {what}", files.channels.display()));
    let text = read_text(&files.channels).map_err(|error| Failed::Facts(error.to_string()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let all = super::super::report::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(all) = all else {
        return Err(wrong("expected an object of channels".to_owned()));
    };
    all.into_iter()
        .map(
            |(name, channel)| match (channel.as_object().map(Map::len), &channel["enabled"]) {
                (Some(1), Value::Bool(enabled)) => Ok((name, *enabled)),
                _ => Err(wrong(format!(
                    "channel `{name}`: found {channel}, expected {{\"enabled\": true}}"
                ))),
            },
        )
        .collect()
}

struct Item {
    id: String,
    channel: String,
    attempts: i64,
    received: i64,
}

/// An item of exactly the four keys, each once; integers written as integers.
fn item(line: &str) -> Option<Item> {
    let value = super::super::report::parse(line.as_bytes()).ok()?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    if value.as_object()?.len() != 4 {
        return None;
    }
    Some(Item {
        id: text("id")?,
        channel: text("channel")?,
        attempts: value["attempts"].as_i64().filter(|attempts| *attempts >= 0)?,
        received: value["received_at_value"].as_i64()?,
    })
}

fn judge(contract: &QueueRoundContract, channels: &BTreeMap<String, bool>, now: i64, item: &Item) -> Value {
    let unit = match contract.delay_unit {
        DelayUnit::Milliseconds => 1,
        DelayUnit::Seconds => 1_000,
    };
    let age = cut((i128::from(now) - i128::from(item.received)) * unit);
    // base × 2 ^ attempts; with 63 doublings any base is beyond 64 bits
    let backoff = cut(i128::from(contract.backoff_base_ms) << item.attempts.min(63));
    let admitted = match channels.get(&item.channel) {
        None => Err("channel_unknown"),
        Some(false) => Err("channel_disabled"),
        Some(true) => Ok(age >= backoff),
    };
    let at_limit = item.attempts >= contract.max_attempts;
    let (verdict, reason) = match admitted {
        Ok(true) => ("deliver", "ready"),
        _ if at_limit => ("dead", "max_attempts"),
        Ok(false) => ("defer", "not_due"),
        Err(reason) => ("block", reason),
    };
    json!({
        "id": item.id, "channel": item.channel, "attempts": item.attempts, "age_ms": age, "backoff_ms": backoff, "verdict": verdict,
        "reason": reason, "delay_unit": contract.delay_unit.word(), "wait_ms": (verdict == "deliver").then_some(age),
    })
}
