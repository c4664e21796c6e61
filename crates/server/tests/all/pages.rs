//! Pages: forward and back, each row exactly once, whatever the limit.

use crate::harness::Harness;
use serde_json::{Value, json};

const MESSAGES: usize = 120;

fn ids(page: &Value) -> Vec<String> {
    let rows = page["data"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn walking_forward_gives_each_message_once_newest_first_for_every_limit() {
    let server = Harness::with_app("acme");
    let mut sent: Vec<_> = (0..MESSAGES)
        .map(|n| server.api.send("acme", &json!({ "n": n })))
        .collect();
    sent.sort_unstable_by(|a, b| b.cmp(a));
    for limit in [1, 7, 50, 250] {
        let (mut seen, mut from) = (Vec::new(), String::new());
        loop {
            let page = server
                .api
                .get(&format!("/app/acme/msg?limit={limit}{from}"))
                .is(200);
            seen.extend(ids(&page));
            if page["done"] == true {
                break;
            }
            from = format!("&iterator={}", page["iterator"].as_str().unwrap());
        }
        assert_eq!(seen, sent, "limit {limit}");
    }
}

#[test]
fn a_page_back_is_the_page_that_came_before() {
    let server = Harness::with_app("acme");
    for n in 0..20 {
        server.api.send("acme", &json!({ "n": n }));
    }
    let page = |query: &str| server.api.get(&format!("/app/acme/msg?limit=5{query}")).is(200);
    let first = page("");
    let second = page(&format!("&iterator={}", first["iterator"].as_str().unwrap()));
    let back = page(&format!("&iterator={}", second["prevIterator"].as_str().unwrap()));
    assert_eq!(ids(&back), ids(&first));
}

#[test]
fn a_limit_from_1_to_250_is_taken_and_others_are_refused() {
    let server = Harness::with_app("acme");
    for limit in ["1", "250"] {
        server.api.get(&format!("/app/acme/msg?limit={limit}")).is(200);
    }
    for limit in ["0", "251"] {
        assert_eq!(
            server.api.get(&format!("/app/acme/msg?limit={limit}")).invalid(),
            ["query/limit"]
        );
    }
}
