//! Calls that are refused, and store nothing.

use crate::harness::Harness;
use serde_json::json;

#[test]
fn without_a_good_token_every_call_is_a_401() {
    let server = Harness::with_app("acme");
    for token in [None, Some("dhk_wrong-token-0123456789"), Some("")] {
        let mut api = server.api.clone();
        api.token = token.map(str::to_owned);
        api.get("/app/acme").coded(401, "authentication_failed");
        api.post("/app/acme/msg", &json!({}))
            .coded(401, "authentication_failed");
    }
    server.api.get("/health").is(204);
}

#[test]
fn a_bad_message_is_refused_and_nothing_is_stored() {
    let server = Harness::with_app("acme");
    let path = "/api/v1/app/acme/msg";
    for body in [
        "",
        "{",
        "[]",
        r#"{"eventType":"a.b","payload":{"#,
        r#"{"eventType":"a.b","payload":{}} x"#,
    ] {
        let answer = server.api.raw("POST", path, &[], Some(body));
        assert!((400..500).contains(&answer.status), "{body}: {}", answer.text);
    }
    for (body, place) in [
        (json!({ "payload": {} }), "body/eventType"),
        (json!({ "eventType": "a b", "payload": {} }), "body/eventType"),
        (json!({ "eventType": "a.b" }), "body/payload"),
        (json!({ "eventType": "a.b", "payload": [] }), "body/payload"),
        (
            json!({ "eventType": "a.b", "payload": {}, "deliverAt": "2030-01-01T00:00:00Z" }),
            "body/deliverAt",
        ),
    ] {
        assert_eq!(
            server.api.post("/app/acme/msg", &body).invalid(),
            [place],
            "{body}"
        );
    }
    let listed = server.api.get("/app/acme/msg").is(200);
    assert_eq!(listed["data"], json!([]));
    assert_eq!(listed["done"], true);
}

#[test]
fn an_unknown_application_endpoint_or_message_is_a_404() {
    let server = Harness::with_app("acme");
    for path in [
        "/app/none",
        "/app/acme/endpoint/none",
        "/app/acme/msg/none",
        "/app/acme/attempt/msg/none",
    ] {
        server.api.get(path).coded(404, "not_found");
    }
    server
        .api
        .post("/app/none/msg", &json!({ "eventType": "a.b", "payload": {} }))
        .coded(404, "not_found");
}

#[test]
fn a_body_over_the_limit_is_a_413_and_one_at_the_limit_is_taken() {
    let server = Harness::with(server::Config {
        max_body: 2048,
        ..server::Config::default()
    });
    server.api.app("acme");
    let sized = |size: usize| {
        let frame = r#"{"eventType":"a.b","payload":{"x":""}}"#;
        frame.replace(
            r#""x":"""#,
            &format!(r#""x":"{}""#, "y".repeat(size - frame.len())),
        )
    };
    let send = |size| {
        server
            .api
            .raw("POST", "/api/v1/app/acme/msg", &[], Some(&sized(size)))
    };
    send(2048).is(202);
    send(2049).coded(413, "payload_too_large");
    assert_eq!(
        server.api.get("/app/acme/msg").is(200)["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_bad_url_is_refused() {
    let server = Harness::with_app("acme");
    for url in [
        "",
        "ftp://example.com",
        "http://user:pw@example.com/",
        "http://example.com/\tx",
        "nonsense",
    ] {
        let places = server
            .api
            .post("/app/acme/endpoint", &json!({ "url": url }))
            .invalid();
        assert_eq!(places, ["body/url"], "{url}");
    }
    assert_eq!(server.api.get("/app/acme/endpoint").is(200)["data"], json!([]));
}
