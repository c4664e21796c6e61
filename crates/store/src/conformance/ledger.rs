//! The ledger as it is streamed: what stands in it, in which order, and that it is of one moment.

use super::Factory;
use super::world::{Closed, NODE, Records, World, at, instant};
use crate::{LedgerSink, Next, StoreError};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, DeliveryEventKind, EndpointEvent, EndpointState,
    MessageRecord, NodeEvent, Outcome, Trigger,
};
use std::sync::Arc;

/// One message to two endpoints, a failure, a success, a redrive.
async fn story(world: &World<'_>) -> contract::MessageId {
    let first = world.endpoint(EndpointState::Active).await;
    world.endpoint(EndpointState::Draining).await;
    let claimed = world.sending(10).await;
    world.settle(world.ended(&claimed, 20, world.retry_at(30))).await;
    let due = world.due(&first, 30).await.remove(0);
    let second = world.claim(due, 31).await.expect("claimed");
    world.settle(world.ended(&second, 40, Next::Succeeded)).await;
    world.redrive(claimed.due.message.id, &first, 50).await;
    claimed.due.message.id
}

/// Every record with every field.
pub async fn every_record_is_told(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let message = story(&world).await;
    let ledger = world.ledger().await;
    assert_eq!(ledger.contracts.len(), 1);
    assert_eq!(
        (
            ledger.contracts[0].rev.as_str(),
            ledger.contracts[0].canonical.as_str()
        ),
        ("rev-1", "{\"name\":\"kit\"}")
    );
    let [told] = &ledger.messages[..] else {
        panic!("{:?}", ledger.messages)
    };
    assert_eq!(
        (told.message_id.as_str(), told.at, told.deliveries),
        (message.to_string().as_str(), instant(10), 2)
    );
    assert_eq!(ledger.endpoint_events.len(), 2);
    assert_eq!(ledger.node_events.len(), 1);
    let endpoint = &ledger.endpoint_events[0].endpoint_id;
    let attempts: Vec<_> = ledger.attempts.iter().collect();
    assert_eq!(attempts.len(), 2);
    let second = AttemptRecord {
        attempt_id: attempts[1].attempt_id.clone(),
        seq: attempts[1].seq,
        message_id: message.to_string(),
        endpoint_id: endpoint.clone(),
        delivery_no: contract::DeliveryNo::FIRST,
        attempt_no: contract::AttemptNo::new(2),
        retry_rev: "rev-1".to_owned(),
        endpoint_rev: "rev-1".to_owned(),
        due_at: instant(30),
        started_at: instant(31),
        ended_at: Some(instant(40)),
        outcome: Some(Outcome::Succeeded),
        status: Some(204),
        error: None,
        retry_after: None,
        wait_ms: Some(contract::Duration::from_ms(1234)),
        node: NODE.to_owned(),
        trigger: Trigger::Scheduled,
    };
    assert_eq!(*attempts[1], second);
    assert_eq!(attempts[0].wait_ms, None);
    let of_first = ledger
        .delivery_events
        .iter()
        .filter(|event| event.endpoint_id == *endpoint);
    let told: Vec<_> = of_first
        .map(|event| (event.delivery_no.get(), event.event, event.at))
        .collect();
    let [opened, succeeded] = [DeliveryEventKind::Opened, DeliveryEventKind::Succeeded];
    assert_eq!(
        told,
        [
            (1, opened, instant(10)),
            (1, succeeded, instant(40)),
            (2, opened, instant(50))
        ]
    );
}

/// Delivery events and attempts come grouped by message, endpoint and delivery number, by seq within.
pub async fn records_come_grouped(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let message = story(&world).await;
    let endpoints = world
        .store
        .endpoints(Some(world.app.key), super::world::page(9))
        .await
        .expect("read");
    for ms in [100, 200] {
        world.accept_and_start(world.message(ms)).await;
        // Numbers of an old message that are given after newer messages.
        for endpoint in &endpoints {
            world.redrive(message, endpoint, ms).await;
        }
    }
    let sink = world
        .store
        .read_ledger(Box::<Order>::default())
        .await
        .expect("read_ledger");
    let order: Box<Order> = sink.into_any().downcast().expect("the sink");
    let mut seen: Vec<(String, String, u32)> = Vec::new();
    let mut last = 0;
    for (group, seq) in &order.0 {
        if seen.last() == Some(group) {
            assert!(*seq > last, "by seq within {group:?}");
        } else {
            assert!(!seen.contains(group), "{group:?} is told in two parts");
            seen.push(group.clone());
        }
        last = *seq;
    }
    let messages: Vec<_> = seen.iter().map(|group| group.0.clone()).collect();
    let mut distinct = messages.clone();
    distinct.dedup();
    let count = distinct.len();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), count, "a message's deliveries stand together");
    let ledger = world.ledger().await;
    assert!(ledger.messages.is_sorted_by_key(|record| record.seq));
    assert!(ledger.endpoint_events.is_sorted_by_key(|record| record.seq));
    assert!(ledger.node_events.is_sorted_by_key(|record| record.seq));
}

/// The groups of delivery events and attempts in the order they came.
#[derive(Default)]
struct Order(Vec<((String, String, u32), u64)>);

impl LedgerSink for Order {
    fn contract(&mut self, _: &ContractRecord) -> crate::Result<()> {
        Ok(())
    }
    fn message(&mut self, _: &MessageRecord) -> crate::Result<()> {
        Ok(())
    }
    fn endpoint_event(&mut self, _: &EndpointEvent) -> crate::Result<()> {
        Ok(())
    }
    fn node_event(&mut self, _: &NodeEvent) -> crate::Result<()> {
        Ok(())
    }
    fn delivery_event(&mut self, record: &DeliveryEvent) -> crate::Result<()> {
        let group = (
            record.message_id.clone(),
            record.endpoint_id.clone(),
            record.delivery_no.get(),
        );
        self.0.push((group, record.seq.get()));
        Ok(())
    }
    fn attempt(&mut self, record: &AttemptRecord) -> crate::Result<()> {
        let group = (
            record.message_id.clone(),
            record.endpoint_id.clone(),
            record.delivery_no.get(),
        );
        self.0.push((group, record.seq.get()));
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

/// The seq is the order of commits: what was answered before has the smaller one.
pub async fn seq_is_the_order_of_commits(factory: &dyn Factory) {
    let world = World::new(factory).await;
    let endpoint = world.endpoint(EndpointState::Active).await;
    let claimed = world.sending(10).await;
    world.set_state(&endpoint, EndpointState::Draining, 15).await;
    world.settle(world.ended(&claimed, 20, Next::Succeeded)).await;
    let ledger = world.ledger().await;
    let started = ledger.attempts[0].seq;
    let drained = ledger.endpoint_events[1].seq;
    let [opened, succeeded] = [ledger.delivery_events[0].seq, ledger.delivery_events[1].seq];
    let message = ledger.messages[0].seq;
    assert!(message < opened && opened < started && started < drained && drained < succeeded);
}

/// The ledger is of one moment: no attempt without its message, whatever is written meanwhile.
pub async fn the_ledger_is_of_one_moment(factory: &dyn Factory) {
    let world = World::new(factory).await;
    world.endpoint(EndpointState::Active).await;
    let (store, gate) = (Arc::clone(&world.store), world.open_gate(5));
    let messages: Vec<_> = (0..300).map(|ms| world.message(ms)).collect();
    let writing = tokio::spawn(async move {
        for message in messages {
            store.accept(message, gate.clone()).await.expect("accept");
        }
    });
    let mut ledgers: Vec<Records> = Vec::new();
    while !writing.is_finished() {
        ledgers.push(world.ledger().await);
    }
    writing.await.expect("writing");
    ledgers.push(world.ledger().await);
    assert_eq!(ledgers.last().map(|ledger| ledger.messages.len()), Some(300));
    for ledger in ledgers {
        assert_eq!(ledger.messages.len(), ledger.delivery_events.len());
        assert_eq!(ledger.messages.len(), ledger.attempts.len());
    }
}

/// A sink that has enough ends the reading with its own error.
pub async fn a_sinks_error_ends_the_reading(factory: &dyn Factory) {
    struct Full;
    impl LedgerSink for Full {
        fn contract(&mut self, _: &ContractRecord) -> crate::Result<()> {
            Err(StoreError::Full)
        }
        fn message(&mut self, _: &MessageRecord) -> crate::Result<()> {
            Ok(())
        }
        fn endpoint_event(&mut self, _: &EndpointEvent) -> crate::Result<()> {
            Ok(())
        }
        fn node_event(&mut self, _: &NodeEvent) -> crate::Result<()> {
            Ok(())
        }
        fn delivery_event(&mut self, _: &DeliveryEvent) -> crate::Result<()> {
            Ok(())
        }
        fn attempt(&mut self, _: &AttemptRecord) -> crate::Result<()> {
            Ok(())
        }
        fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
            self
        }
    }
    let world = World::new(factory).await;
    let read = world.store.read_ledger(Box::new(Full)).await;
    assert!(matches!(read.err(), Some(StoreError::Full)));
    world
        .store
        .heartbeat(NODE, at(9))
        .await
        .expect("the store goes on");
    world
        .store
        .accept(world.message(10), Arc::new(Closed))
        .await
        .expect("accept");
}
