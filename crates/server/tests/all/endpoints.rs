//! Endpoints: fields, state beside `disabled`, secrets, headers.

use crate::harness::{Harness, Receiver};
use serde_json::{Value, json};

fn made(server: &Harness, body: &Value) -> Value {
    server.api.post("/app/acme/endpoint", body).is(201)
}

#[test]
fn create_answers_201_and_every_field_that_clients_require() {
    let server = Harness::with_app("acme");
    let endpoint = made(&server, &json!({ "url": "https://example.com/hook" }));
    assert_eq!(endpoint["id"].as_str().unwrap().len(), 30);
    assert_eq!(endpoint["url"], "https://example.com/hook");
    assert_eq!(endpoint["description"], "");
    assert_eq!(endpoint["metadata"], json!({}));
    assert_eq!(endpoint["disabled"], false);
    assert_eq!(endpoint["state"], "active");
    assert_eq!(endpoint["eventTypes"], json!(null));
    assert_eq!(endpoint["channels"], json!(null));
    assert!(endpoint["createdAt"].is_string() && endpoint["updatedAt"].is_string());
    assert!(
        endpoint.get("secret").is_none(),
        "the secret has a route of its own"
    );
    let id = endpoint["id"].as_str().unwrap();
    assert_eq!(
        server.api.get(&format!("/app/acme/endpoint/{id}")).is(200),
        endpoint
    );
}

#[test]
fn older_names_of_fields_are_read_and_written() {
    let server = Harness::with_app("acme");
    let body = json!({ "url": "https://example.com/", "filterTypes": ["a.b"], "rateLimit": 7 });
    let endpoint = made(&server, &body);
    for (field, value) in [
        ("eventTypes", json!(["a.b"])),
        ("filterTypes", json!(["a.b"])),
        ("throttleRate", json!(7)),
        ("rateLimit", json!(7)),
    ] {
        assert_eq!(endpoint[field], value, "{field}");
    }
}

#[test]
fn state_and_disabled_say_the_same() {
    let server = Harness::with_app("acme");
    for (body, state, disabled) in [
        (json!({}), "active", false),
        (json!({ "disabled": false }), "active", false),
        (json!({ "disabled": true }), "disabled", true),
        (json!({ "state": "draining" }), "draining", false),
        (
            json!({ "state": "draining", "disabled": false }),
            "draining",
            false,
        ),
        (json!({ "state": "disabled", "disabled": true }), "disabled", true),
    ] {
        let mut body = body;
        body["url"] = json!("https://example.com/");
        let endpoint = made(&server, &body);
        assert_eq!(
            (&endpoint["state"], &endpoint["disabled"]),
            (&json!(state), &json!(disabled)),
            "{body}"
        );
    }
    for body in [
        json!({ "state": "active", "disabled": true }),
        json!({ "state": "deleted" }),
        json!({ "state": "paused" }),
        json!({ "state": 1 }),
    ] {
        let mut body = body;
        body["url"] = json!("https://example.com/");
        assert_eq!(
            server.api.post("/app/acme/endpoint", &body).invalid(),
            ["body/state"],
            "{body}"
        );
    }
}

#[test]
fn a_client_that_knows_only_disabled_never_undrains() {
    let server = Harness::with_app("acme");
    let url = "https://example.com/";
    let id = server.api.endpoint("acme", url);
    let path = format!("/app/acme/endpoint/{id}");
    let state = |answer: Value| answer["state"].as_str().unwrap().to_owned();
    assert_eq!(
        state(server.api.patch(&path, &json!({ "state": "draining" })).is(200)),
        "draining"
    );
    assert_eq!(
        state(server.api.put(&path, &json!({ "url": url })).is(200)),
        "draining"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "disabled": false })).is(200)),
        "draining"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "description": "x" })).is(200)),
        "draining"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "disabled": true })).is(200)),
        "disabled"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "description": "y" })).is(200)),
        "disabled"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "disabled": false })).is(200)),
        "active"
    );
    assert_eq!(
        state(server.api.patch(&path, &json!({ "disabled": true })).is(200)),
        "disabled"
    );
    assert_eq!(
        state(server.api.put(&path, &json!({ "url": url })).is(200)),
        "active"
    );
}

#[test]
fn put_of_an_unknown_uid_answers_201_then_200() {
    let server = Harness::with_app("acme");
    let first = server
        .api
        .put(
            "/app/acme/endpoint/main",
            &json!({ "url": "https://example.com/a" }),
        )
        .is(201);
    assert_eq!(first["uid"], "main");
    let body = json!({ "url": "https://example.com/b", "eventTypes": ["a"] });
    let second = server.api.put("/app/acme/endpoint/main", &body).is(200);
    assert_eq!(second["id"], first["id"]);
    assert_eq!(second["url"], "https://example.com/b");
    let third = server
        .api
        .put(
            "/app/acme/endpoint/main",
            &json!({ "url": "https://example.com/b" }),
        )
        .is(200);
    assert_eq!(third["eventTypes"], json!(null), "a PUT replaces everything");
}

#[test]
fn patch_with_null_or_an_empty_list_clears_a_filter() {
    let server = Harness::with_app("acme");
    let body = json!({ "url": "https://example.com/", "eventTypes": ["a"], "channels": ["c"], "uid": "u" });
    let id = made(&server, &body)["id"].as_str().unwrap().to_owned();
    let path = format!("/app/acme/endpoint/{id}");
    let changed = server
        .api
        .patch(&path, &json!({ "eventTypes": [], "channels": null }))
        .is(200);
    assert_eq!(
        (&changed["eventTypes"], &changed["channels"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(changed["uid"], "u");
}

#[test]
fn a_deleted_endpoint_is_gone() {
    let server = Harness::with_app("acme");
    let id = server.api.endpoint("acme", "https://example.com/");
    let path = format!("/app/acme/endpoint/{id}");
    assert_eq!(server.api.delete(&path).status, 204);
    server.api.get(&path).coded(404, "not_found");
    server.api.delete(&path).coded(404, "not_found");
    assert_eq!(server.api.get("/app/acme/endpoint").is(200)["data"], json!([]));
}

#[test]
fn an_endpoint_of_another_application_is_not_found() {
    let server = Harness::with_app("acme");
    server.api.app("other");
    let id = server.api.endpoint("other", "https://example.com/");
    server
        .api
        .get(&format!("/app/acme/endpoint/{id}"))
        .coded(404, "not_found");
    server
        .api
        .patch(&format!("/app/acme/endpoint/{id}"), &json!({}))
        .coded(404, "not_found");
}

#[test]
fn a_secret_is_made_or_taken_and_shown_on_its_own_route() {
    let server = Harness::with_app("acme");
    let given = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let id = made(
        &server,
        &json!({ "url": "https://example.com/", "secret": given }),
    );
    let path = format!("/app/acme/endpoint/{}/secret", id["id"].as_str().unwrap());
    assert_eq!(server.api.get(&path).is(200), json!({ "key": given }));
    let id = server.api.endpoint("acme", "https://example.com/");
    let one = server.api.get(&format!("/app/acme/endpoint/{id}/secret")).is(200);
    let id = server.api.endpoint("acme", "https://example.com/");
    let other = server.api.get(&format!("/app/acme/endpoint/{id}/secret")).is(200);
    assert!(one["key"].as_str().unwrap().starts_with("whsec_"));
    assert_ne!(one, other);
}

#[test]
fn rotation_signs_with_both_secrets_until_the_grace_time_ends() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(200);
    let id = server.api.endpoint("acme", &receiver.url());
    let path = format!("/app/acme/endpoint/{id}/secret");
    let signatures = |n: usize| {
        receiver
            .nth(n)
            .header("webhook-signature")
            .unwrap()
            .split(' ')
            .count()
    };
    server.api.send("acme", &json!({}));
    assert_eq!(signatures(1), 1);
    let old = server.api.get(&path).is(200);
    assert_eq!(
        server
            .api
            .raw("POST", &format!("/api/v1{path}/rotate"), &[], Some("{}"))
            .status,
        204
    );
    assert_ne!(server.api.get(&path).is(200), old);
    server.api.send("acme", &json!({}));
    assert_eq!(signatures(2), 2);
    let none = json!({ "gracePeriodSeconds": 0, "key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" });
    assert_eq!(server.api.post(&format!("{path}/rotate"), &none).status, 204);
    server.api.send("acme", &json!({}));
    assert_eq!(
        signatures(3),
        2,
        "the first secret still has its day, the second had none"
    );
}

#[test]
fn at_most_ten_old_secrets_sign() {
    let server = Harness::with_app("acme");
    let id = server.api.endpoint("acme", "https://example.com/");
    let path = format!("/app/acme/endpoint/{id}/secret/rotate");
    for _ in 0..10 {
        assert_eq!(server.api.post(&path, &json!({})).status, 204);
    }
    server.api.post(&path, &json!({})).coded(400, "limit_reached");
    let long = json!({ "gracePeriodSeconds": 604_801 });
    assert_eq!(
        server.api.post(&path, &long).invalid(),
        ["body/gracePeriodSeconds"]
    );
    assert_eq!(
        server.api.post(&path, &json!({ "key": "short" })).invalid(),
        ["body/key"]
    );
}

#[test]
fn headers_are_put_patched_sent_and_hidden_where_they_are_credentials() {
    let server = Harness::with_app("acme");
    let receiver = Receiver::start(200);
    let id = server.api.endpoint("acme", &receiver.url());
    let path = format!("/app/acme/endpoint/{id}/headers");
    let put = json!({ "headers": { "X-Plain": "1", "Authorization": "Bearer s3cret", "X-Gone": "x" } });
    assert_eq!(server.api.put(&path, &put).status, 204);
    let change = json!({ "headers": { "x-gone": null, "X-Plain": "2" } });
    assert_eq!(server.api.patch(&path, &change).status, 204);
    let shown = server.api.get(&path).is(200);
    assert_eq!(
        shown,
        json!({ "headers": { "X-Plain": "2" }, "sensitive": ["Authorization"] })
    );
    server.api.send("acme", &json!({}));
    let request = receiver.nth(1);
    assert_eq!(request.header("x-plain"), Some("2"));
    assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(request.header("x-gone"), None);
}

#[test]
fn a_header_that_could_replace_ours_is_refused() {
    let server = Harness::with_app("acme");
    let id = server.api.endpoint("acme", "https://example.com/");
    let path = format!("/app/acme/endpoint/{id}/headers");
    for name in [
        "webhook-signature",
        "svix-id",
        "Host",
        "Connection",
        "content-length",
        "user-agent",
        "a b",
    ] {
        let body = json!({ "headers": { name: "x" } });
        assert_eq!(
            server.api.put(&path, &body).invalid(),
            [format!("body/headers/{name}")]
        );
        assert_eq!(
            server.api.patch(&path, &body).invalid(),
            [format!("body/headers/{name}")]
        );
    }
    let body = json!({ "headers": { "x-split": "a\r\nb: c" } });
    assert_eq!(server.api.put(&path, &body).invalid(), ["body/headers/x-split"]);
    assert_eq!(server.api.get(&path).is(200)["headers"], json!({}));
}
