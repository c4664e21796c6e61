//! Messages and their attempts.

use crate::harness::{Harness, Receiver};
use contract::EndpointId;
use serde_json::json;

#[test]
fn a_202_says_that_message_and_deliveries_are_in_the_store() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(200);
    let endpoint: EndpointId = server.api.endpoint("acme", &receiver.url()).parse().unwrap();
    let id = server.api.send("acme", &json!({ "n": 1 }));
    let deliveries = server.wait(server.store.deliveries(id.parse().unwrap())).unwrap();
    assert_eq!(
        deliveries.iter().map(|one| one.endpoint_id).collect::<Vec<_>>(),
        [endpoint]
    );
}

#[test]
fn the_bytes_accepted_are_the_bytes_sent() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(200);
    server.api.endpoint("acme", &receiver.url());
    let payload = r#"{"z":1.0, "a":  1e2,"é":"\u00e9"}"#;
    let body = format!(r#"{{"eventType":"order.paid","payload":{payload}}}"#);
    server
        .api
        .raw("POST", "/api/v1/app/acme/msg", &[], Some(&body))
        .is(202);
    assert_eq!(receiver.nth(1).body, payload.as_bytes());
}

#[test]
fn an_attempt_has_every_field_that_clients_require() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(503);
    let endpoint = server.api.endpoint("acme", &receiver.url());
    let id = server.api.send("acme", &json!({}));
    let path = format!("/app/acme/attempt/msg/{id}");
    let page = server
        .api
        .until(&path, |page| page["data"][0]["responseStatusCode"] == 503);
    let attempt = &page["data"][0];
    assert_eq!(attempt["url"], receiver.url());
    assert_eq!(attempt["response"], "seen");
    assert_eq!(
        (&attempt["status"], &attempt["statusText"]),
        (&json!(2), &json!("fail"))
    );
    assert_eq!(
        (&attempt["msgId"], &attempt["endpointId"]),
        (&json!(id), &json!(endpoint))
    );
    assert_eq!(attempt["triggerType"], 0);
    assert_eq!(attempt["id"].as_str().unwrap().len(), 33);
    assert!(attempt["responseDurationMs"].is_i64() && attempt["timestamp"].is_string());
}

#[test]
fn a_resend_answers_202_and_goes_at_once() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(503);
    let endpoint = server.api.endpoint("acme", &receiver.url());
    let id = server.api.send("acme", &json!({}));
    receiver.nth(1);
    receiver.answer(200);
    let path = format!("/app/acme/msg/{id}/endpoint/{endpoint}/resend");
    assert_eq!(server.api.post(&path, &json!({})).is(202), json!({}));
    let again = receiver.nth(2);
    assert_eq!(again.header("webhook-id"), Some(id.as_str()));
    assert_eq!(receiver.count(), 2);
}

#[test]
fn a_known_event_id_is_a_conflict_and_a_known_idempotency_key_is_the_first_answer() {
    let server = Harness::with_app("acme");
    let body = json!({ "eventType": "a.b", "payload": {}, "eventId": "e-1" });
    let first = server.api.post("/app/acme/msg", &body).is(202);
    server.api.post("/app/acme/msg", &body).coded(409, "conflict");
    assert_eq!(server.api.get("/app/acme/msg/e-1").is(200)["id"], first["id"]);
    let body = json!({ "eventType": "a.b", "payload": {} }).to_string();
    let keyed = || {
        let headers = [("idempotency-key", "k-1")];
        server
            .api
            .raw("POST", "/api/v1/app/acme/msg", &headers, Some(&body))
            .is(202)["id"]
            .clone()
    };
    assert_eq!(keyed(), keyed());
}
