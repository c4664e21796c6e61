//! The store against a model of it: any sequence of calls, crashes between them, leaves both with the same deliveries,
//! the same counts, and a ledger that adds up. The model knows the state tables of spec/engine.md and nothing of tables.

use crate::sqlite::factory;
use contract::MessageId;
use contract::ledger::{DeadReason, DeliveryEventKind, EndpointState};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use store::conformance::World;
use store::conformance::world::{BOOT, NODE, at, instant};
use store::{Claim, Claimed, DeliveryKey, DeliveryState, Endpoint, Next, NotClaimed, Redrive, Settled};

/// One call, its parameters still to be reduced to what exists.
#[derive(Clone, Copy, Debug)]
enum Call {
    Accept { start: bool },
    Claim { endpoint: usize },
    Settle { which: usize, next: u8 },
    SetState { endpoint: usize, state: usize },
    Bury { endpoint: usize },
    Expire { which: usize },
    Cancel { which: usize },
    Redrive { which: usize },
    Crash,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => any::<bool>().prop_map(|start| Call::Accept { start }),
        6 => (0..2usize).prop_map(|endpoint| Call::Claim { endpoint }),
        8 => (0..64usize, 0..4u8).prop_map(|(which, next)| Call::Settle { which, next }),
        3 => (0..2usize, 0..4usize).prop_map(|(endpoint, state)| Call::SetState { endpoint, state: state.min(2) }),
        2 => (0..2usize).prop_map(|endpoint| Call::Bury { endpoint }),
        1 => (0..64usize).prop_map(|which| Call::Expire { which }),
        1 => (0..64usize).prop_map(|which| Call::Cancel { which }),
        3 => (0..64usize).prop_map(|which| Call::Redrive { which }),
        1 => Just(Call::Crash),
    ]
}

/// A delivery as the model has it.
#[derive(Clone, Debug)]
struct Modelled {
    message: MessageId,
    endpoint: usize,
    number: u32,
    state: DeliveryState,
    attempts: u32,
    reason: Option<&'static str>,
    /// The attempt in flight; a cancelled delivery may have one too.
    in_flight: Option<Claimed>,
}

struct Both<'a> {
    world: World<'a>,
    endpoints: [Endpoint; 2],
    states: [EndpointState; 2],
    model: BTreeMap<DeliveryKey, Modelled>,
    ms: u64,
}

impl<'a> Both<'a> {
    async fn new(factory: &'a dyn store::conformance::Factory) -> Self {
        let world = World::new(factory).await;
        let active = EndpointState::Active;
        let endpoints = [world.endpoint(active).await, world.endpoint(active).await];
        Self {
            world,
            endpoints,
            states: [active; 2],
            model: BTreeMap::new(),
            ms: 10,
        }
    }

    async fn call(mut self, call: Call) -> Self {
        self.ms += 10;
        match call {
            Call::Accept { start } => self.accept(start).await,
            Call::Claim { endpoint } => self.claim(endpoint).await,
            Call::Settle { which, next } => self.settle(which, next).await,
            Call::SetState { endpoint, state } => {
                let state = EndpointState::ALL[state];
                self.world
                    .set_state(&self.endpoints[endpoint], state, self.ms)
                    .await;
                self.states[endpoint] = state;
            }
            Call::Bury { endpoint } => self.bury(endpoint).await,
            Call::Expire { which } => self.end_waiting(which, DeliveryState::Dead).await,
            Call::Cancel { which } => self.end_waiting(which, DeliveryState::Cancelled).await,
            Call::Redrive { which } => self.redrive(which).await,
            Call::Crash => {
                self.world = self.world.crash().await;
                self.world.store.node_up(NODE, BOOT, at(self.ms)).await.unwrap();
            }
        }
        self
    }

    async fn accept(&mut self, start: bool) {
        let message = self.world.message(self.ms);
        let id = message.id;
        let accepted = match start {
            true => self.world.accept_and_start(message).await,
            false => self.world.accept(message).await,
        };
        let mut claims: BTreeMap<_, _> = accepted
            .claimed
            .into_iter()
            .map(|one| (one.due.key, one))
            .collect();
        for stored in self.world.deliveries(id).await {
            let endpoint = usize::from(stored.endpoint == self.endpoints[1].key);
            let in_flight = claims.remove(&stored.key);
            let (state, reason) = match self.states[endpoint] {
                EndpointState::Active if start => (DeliveryState::Sending, None),
                EndpointState::Active | EndpointState::Draining => (DeliveryState::Pending, None),
                _ => (DeliveryState::Dead, Some("endpoint_disabled")),
            };
            assert_eq!(in_flight.is_some(), state == DeliveryState::Sending);
            let attempts = u32::from(in_flight.is_some());
            let modelled = Modelled {
                message: id,
                endpoint,
                number: 1,
                state,
                attempts,
                reason,
                in_flight,
            };
            self.model.insert(stored.key, modelled);
        }
        assert!(claims.is_empty());
    }

    async fn claim(&mut self, endpoint: usize) {
        let waiting: BTreeSet<_> =
            self.keys(|one| one.endpoint == endpoint && one.state == DeliveryState::Pending);
        let due = self.world.due(&self.endpoints[endpoint], self.ms).await;
        assert_eq!(due.iter().map(|due| due.key).collect::<BTreeSet<_>>(), waiting);
        let Some(due) = due.into_iter().next() else { return };
        let (key, attempts) = (due.key, due.attempts);
        let claim = Claim {
            due,
            start: self.world.start(self.ms),
        };
        let (_, mut claims) = self
            .world
            .store
            .settle_and_claim(vec![], vec![claim])
            .await
            .unwrap();
        let claimed = claims.remove(0);
        let modelled = self.model.get_mut(&key).unwrap();
        assert_eq!(modelled.attempts, attempts);
        if self.states[endpoint] != EndpointState::Active {
            assert_eq!(claimed.unwrap_err(), NotClaimed::Held);
            return;
        }
        modelled.state = DeliveryState::Sending;
        modelled.attempts += 1;
        modelled.in_flight = Some(claimed.unwrap());
    }

    fn keys(&self, which: impl Fn(&Modelled) -> bool) -> BTreeSet<DeliveryKey> {
        self.model
            .iter()
            .filter(|(_, one)| which(one))
            .map(|(key, _)| *key)
            .collect()
    }

    fn pick(&self, keys: &BTreeSet<DeliveryKey>, which: usize) -> Option<DeliveryKey> {
        keys.iter().nth(which.checked_rem(keys.len())?).copied()
    }

    async fn settle(&mut self, which: usize, next: u8) {
        let in_flight = self.keys(|one| one.in_flight.is_some());
        let Some(key) = self.pick(&in_flight, which) else {
            return;
        };
        let modelled = self.model.get_mut(&key).unwrap();
        let claimed = modelled.in_flight.take().unwrap();
        let next = match next {
            0 => Next::Succeeded,
            1 => Next::Dead {
                reason: DeadReason::Terminal,
                retry: self.world.contract,
            },
            2 => self.world.retry_at(self.ms),
            _ => Next::Released,
        };
        let buries = match self.states[modelled.endpoint] {
            EndpointState::Disabled => Some(DeadReason::EndpointDisabled),
            _ => None,
        };
        let was_sending = modelled.state == DeliveryState::Sending;
        if next == Next::Released {
            modelled.attempts -= 1;
        }
        let (settled, after) = match (&next, buries) {
            _ if !was_sending => (Settled::Stale, (modelled.state, modelled.reason)),
            (Next::Succeeded, _) => (Settled::Done, (DeliveryState::Succeeded, None)),
            (Next::Dead { .. }, _) => (Settled::Done, (DeliveryState::Dead, Some("terminal"))),
            (_, Some(reason)) => (Settled::Dead(reason), (DeliveryState::Dead, Some(reason.word()))),
            (_, None) => (Settled::Done, (DeliveryState::Pending, None)),
        };
        (modelled.state, modelled.reason) = after;
        assert_eq!(
            self.world.settle(self.world.ended(&claimed, self.ms, next)).await,
            settled
        );
    }

    async fn bury(&mut self, endpoint: usize) {
        let mut expected = 0;
        if self.states[endpoint] == EndpointState::Disabled {
            for one in self.model.values_mut() {
                if one.endpoint == endpoint && one.state == DeliveryState::Pending {
                    (one.state, one.reason) = (DeliveryState::Dead, Some("endpoint_disabled"));
                    expected += 1;
                }
            }
        }
        let buried = self
            .world
            .store
            .bury(self.endpoints[endpoint].key, instant(self.ms), 1000)
            .await
            .unwrap();
        assert_eq!(buried, expected);
    }

    /// Expires or cancels any delivery: those that wait end, the others stay.
    async fn end_waiting(&mut self, which: usize, end: DeliveryState) {
        let all = self.keys(|_| true);
        let Some(key) = self.pick(&all, which) else { return };
        let modelled = self.model.get_mut(&key).unwrap();
        let waits = modelled.state == DeliveryState::Pending;
        let reason = if end == DeliveryState::Dead {
            "max_age"
        } else {
            "by hand"
        };
        if waits {
            (modelled.state, modelled.reason) = (end, Some(reason));
        }
        let ended = match end {
            DeliveryState::Dead => {
                let expired = vec![(key, self.world.contract)];
                self.world.store.expire(expired, instant(self.ms)).await.unwrap() == 1
            }
            _ => self
                .world
                .store
                .cancel(key, reason, instant(self.ms))
                .await
                .unwrap(),
        };
        assert_eq!(ended, waits);
    }

    async fn redrive(&mut self, which: usize) {
        let all = self.keys(|_| true);
        let Some(key) = self.pick(&all, which) else { return };
        let (message, endpoint) = (self.model[&key].message, self.model[&key].endpoint);
        let mut number = 0;
        for one in self
            .model
            .values_mut()
            .filter(|one| one.message == message && one.endpoint == endpoint)
        {
            number = number.max(one.number);
            if matches!(one.state, DeliveryState::Pending | DeliveryState::Sending) {
                (one.state, one.reason) = (DeliveryState::Cancelled, None);
            }
        }
        let redrive = Redrive {
            message,
            endpoint: self.endpoints[endpoint].key,
            now: instant(self.ms),
        };
        let opened = self.world.store.redrive(redrive).await.unwrap();
        let (state, reason) = match self.states[endpoint] {
            EndpointState::Disabled => (DeliveryState::Dead, Some("endpoint_disabled")),
            _ => (DeliveryState::Pending, None),
        };
        let number = number + 1;
        assert_eq!((opened.delivery_no.get(), opened.state), (number, state));
        let modelled = Modelled {
            message,
            endpoint,
            number,
            state,
            attempts: 0,
            reason,
            in_flight: None,
        };
        self.model.insert(opened.key, modelled);
    }

    /// Both say the same, and the ledger adds up.
    async fn compare(&self) {
        let messages: BTreeSet<_> = self.model.values().map(|one| one.message).collect();
        let mut found = 0;
        for message in &messages {
            for stored in self.world.deliveries(*message).await {
                let one = &self.model[&stored.key];
                assert_eq!(
                    (stored.state, stored.attempts, stored.delivery_no.get()),
                    (one.state, one.attempts, one.number)
                );
                // A superseded delivery's reason names its successor; the model does not spell it.
                if one.state != DeliveryState::Cancelled {
                    assert_eq!(stored.reason.as_deref(), one.reason);
                }
                assert_eq!(
                    stored.due_at.is_some(),
                    one.state == DeliveryState::Pending,
                    "a due time or an owner"
                );
                found += 1;
            }
        }
        assert_eq!(found, self.model.len());
        let in_flight = self.world.store.sending(None, 1000).await.unwrap();
        let listed: BTreeSet<_> = in_flight.iter().map(|one| one.due.key).collect();
        assert_eq!(listed, self.keys(|one| one.in_flight.is_some()));
        self.compare_counts().await;
        self.check_ledger().await;
    }

    async fn compare_counts(&self) {
        let counts = self.world.store.counts().await.unwrap();
        let count = |state| self.keys(|one| one.state == state).len() as u64;
        let held = |one: &Modelled| self.states[one.endpoint] != EndpointState::Active;
        let waiting = self
            .keys(|one| one.state == DeliveryState::Pending && held(one))
            .len() as u64;
        assert_eq!(
            (counts.held, counts.pending),
            (waiting, count(DeliveryState::Pending) - waiting)
        );
        let ended = (counts.sending, counts.succeeded, counts.dead, counts.cancelled);
        let modelled = [
            DeliveryState::Sending,
            DeliveryState::Succeeded,
            DeliveryState::Dead,
            DeliveryState::Cancelled,
        ];
        assert_eq!(ended, modelled.map(count).into());
    }

    async fn check_ledger(&self) {
        let ledger = self.world.ledger().await;
        let mut seqs = BTreeSet::new();
        let ours = ledger.messages.iter().map(|one| one.seq.get());
        let events = ledger.endpoint_events.iter().map(|one| one.seq.get());
        let nodes = ledger.node_events.iter().map(|one| one.seq.get());
        for seq in ours.chain(events).chain(nodes).chain(ledger.seqs.iter().copied()) {
            assert!(seqs.insert(seq), "seq {seq} twice");
        }
        let group = |message: &String, endpoint: &String, number: contract::DeliveryNo| {
            (message.clone(), endpoint.clone(), number.get())
        };
        let mut opened = BTreeSet::new();
        let mut closed = BTreeSet::new();
        for event in &ledger.delivery_events {
            let group = group(&event.message_id, &event.endpoint_id, event.delivery_no);
            let set = if event.event == DeliveryEventKind::Opened {
                &mut opened
            } else {
                &mut closed
            };
            assert!(set.insert(group), "an event twice: {event:?}");
        }
        assert_eq!(opened.len(), self.model.len());
        let open = |one: &Modelled| matches!(one.state, DeliveryState::Pending | DeliveryState::Sending);
        assert_eq!(closed.len(), self.model.len() - self.keys(open).len());
        let mut attempts: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for attempt in &ledger.attempts {
            let group = group(&attempt.message_id, &attempt.endpoint_id, attempt.delivery_no);
            attempts.entry(group).or_default().push(attempt.attempt_no.get());
        }
        for numbers in attempts.values() {
            assert!(
                (1..).zip(numbers).all(|(due, number)| due == *number),
                "{numbers:?}"
            );
        }
        let made: u32 = self.model.values().map(|one| one.attempts).sum();
        assert_eq!(u32::try_from(ledger.attempts.len()), Ok(made));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_leave_what_the_model_says(calls in prop::collection::vec(call(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = factory();
            let mut both = Both::new(&place).await;
            for call in calls {
                both = both.call(call).await;
            }
            both.compare().await;
            both.world = both.world.crash().await;
            both.compare().await;
        });
    }
}
