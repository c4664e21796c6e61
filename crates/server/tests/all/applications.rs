//! Applications.

use crate::harness::Harness;
use serde_json::json;

#[test]
fn create_answers_201_and_every_field_that_clients_require() {
    let server = Harness::start();
    let body =
        json!({ "name": "Acme", "uid": "acme", "throttleRate": 5, "metadata": { "a": "b" }, "later": 1 });
    let app = server.api.post("/app", &body).is(201);
    assert_eq!(app["name"], "Acme");
    assert_eq!(app["uid"], "acme");
    assert_eq!(app["throttleRate"], 5);
    assert_eq!(app["metadata"], json!({ "a": "b" }));
    assert_eq!(app["id"].as_str().unwrap().len(), 31);
    for field in ["createdAt", "updatedAt"] {
        let time = app[field].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    }
    let id = app["id"].as_str().unwrap();
    assert_eq!(server.api.get(&format!("/app/{id}")).is(200), app);
    assert_eq!(server.api.get("/app/acme").is(200), app);
    assert_eq!(
        server.api.get("/app/acme/").is(200),
        app,
        "a trailing slash is trimmed"
    );
}

#[test]
fn get_if_exists_answers_201_then_200() {
    let server = Harness::start();
    let body = json!({ "name": "Acme", "uid": "acme" });
    let app = server.api.post("/app?get_if_exists=true", &body).is(201);
    let again = json!({ "name": "Other", "uid": "acme" });
    assert_eq!(server.api.post("/app?get_if_exists=true", &again).is(200), app);
    server.api.post("/app", &again).coded(409, "conflict");
    server
        .api
        .post("/app?get_if_exists=false", &again)
        .coded(409, "conflict");
}

#[test]
fn put_of_an_unknown_uid_answers_201_then_200() {
    let server = Harness::start();
    let made = server.api.put("/app/acme", &json!({ "name": "A" })).is(201);
    assert_eq!(made["uid"], "acme");
    let changed = server
        .api
        .put("/app/acme", &json!({ "name": "B", "metadata": { "k": "v" } }))
        .is(200);
    assert_eq!(changed["id"], made["id"]);
    assert_eq!(changed["name"], "B");
    assert_eq!(changed["uid"], "acme", "a PUT by uid can be repeated");
    let id = "app_000000000000000000000000000";
    server
        .api
        .put(&format!("/app/{id}"), &json!({ "name": "A" }))
        .coded(404, "not_found");
    let other = json!({ "name": "A", "uid": "y" });
    assert_eq!(server.api.put("/app/x", &other).invalid(), ["body/uid"]);
}

#[test]
fn patch_keeps_what_is_absent_and_clears_what_is_null() {
    let server = Harness::start();
    let body = json!({ "name": "A", "uid": "acme", "throttleRate": 5, "metadata": { "a": "b" } });
    let id = server.api.post("/app", &body).is(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/app/{id}");
    let app = server.api.patch(&path, &json!({ "name": "B" })).is(200);
    assert_eq!(
        (&app["name"], &app["uid"], &app["throttleRate"]),
        (&json!("B"), &json!("acme"), &json!(5))
    );
    let app = server
        .api
        .patch(&path, &json!({ "uid": null, "throttleRate": null }))
        .is(200);
    assert_eq!((&app["uid"], &app["throttleRate"]), (&json!(null), &json!(null)));
    assert_eq!(app["metadata"], json!({ "a": "b" }));
    server.api.get("/app/acme").coded(404, "not_found");
    assert_eq!(
        server.api.patch(&path, &json!({ "name": null })).invalid(),
        ["body/name"]
    );
}

#[test]
fn a_deleted_application_takes_no_message_although_its_uid_was_remembered() {
    let server = Harness::start();
    server.api.app("acme");
    server.api.send("acme", &json!({}));
    assert_eq!(server.api.delete("/app/acme").status, 204);
    server.api.get("/app/acme").coded(404, "not_found");
    let message = json!({ "eventType": "a", "payload": {} });
    server.api.post("/app/acme/msg", &message).coded(404, "not_found");
    server.api.app("acme");
    server.api.send("acme", &json!({}));
}

#[test]
fn a_uid_that_moves_to_another_application_takes_its_messages_along() {
    let server = Harness::start();
    let first = server.api.app("acme");
    server.api.send("acme", &json!({}));
    let first = format!("/app/{}", first["id"].as_str().unwrap());
    server.api.patch(&first, &json!({ "uid": "old" })).is(200);
    server.api.app("acme");
    let message = server.api.send("acme", &json!({}));
    server.api.get(&format!("/app/acme/msg/{message}")).is(200);
    server
        .api
        .get(&format!("/app/old/msg/{message}"))
        .coded(404, "not_found");
}
