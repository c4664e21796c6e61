//! The two state tables of spec/engine.md, cell by cell.

use contract::ledger::{DeadReason, EndpointState};
use schedule::states::{
    DeliveryEvent as E, DeliveryState as S, EndpointEvent, Waiting, endpoint_transition, transition, waiting,
};

const STATES: [S; 5] = [S::Pending, S::Sending, S::Succeeded, S::Dead, S::Cancelled];
const EVENTS: [E; 9] = [
    E::Claim,
    E::Release,
    E::Succeed,
    E::Retry,
    E::GiveUp,
    E::Expire,
    E::Bury,
    E::Cancel,
    E::Supersede,
];

/// Every legal pair; the 35 others are illegal.
const LEGAL: [(S, E, S); 10] = [
    (S::Pending, E::Claim, S::Sending),
    (S::Pending, E::Expire, S::Dead),
    (S::Pending, E::Bury, S::Dead),
    (S::Pending, E::Cancel, S::Cancelled),
    (S::Pending, E::Supersede, S::Cancelled),
    (S::Sending, E::Succeed, S::Succeeded),
    (S::Sending, E::Retry, S::Pending),
    (S::Sending, E::Release, S::Pending),
    (S::Sending, E::GiveUp, S::Dead),
    (S::Sending, E::Supersede, S::Cancelled),
];

#[test]
fn every_pair_of_delivery_state_and_event_is_legal_or_names_both() {
    for state in STATES {
        for event in EVENTS {
            let want = LEGAL
                .iter()
                .find(|(from, by, _)| (*from, *by) == (state, event))
                .map(|(_, _, to)| *to);
            match (transition(state, event), want) {
                (Ok(to), Some(want)) => assert_eq!(to, want, "{state:?} {event:?}"),
                (Err(error), None) => {
                    assert_eq!((error.state, error.event), (state, event));
                    let text = error.to_string();
                    assert!(
                        text.contains(&format!("{state:?}")) && text.contains(&format!("{event:?}")),
                        "{text}"
                    );
                }
                (got, want) => panic!("{state:?} {event:?}: {got:?}, not {want:?}"),
            }
        }
    }
}

#[test]
fn a_final_delivery_stays_as_it_is() {
    for state in [S::Succeeded, S::Dead, S::Cancelled] {
        assert!(
            EVENTS.iter().all(|event| transition(state, *event).is_err()),
            "{state:?}"
        );
    }
}

#[test]
fn every_endpoint_state_leads_to_every_other_but_deleted_is_final() {
    use EndpointState as T;
    let asked = [
        (EndpointEvent::Activate, T::Active),
        (EndpointEvent::Drain, T::Draining),
        (EndpointEvent::Disable, T::Disabled),
        (EndpointEvent::Delete, T::Deleted),
    ];
    for (event, want) in asked {
        for state in [T::Active, T::Draining, T::Disabled] {
            assert_eq!(endpoint_transition(state, event), Ok(want), "{state} {event:?}");
        }
        let error = endpoint_transition(T::Deleted, event).unwrap_err();
        assert!(error.to_string().contains("deleted"), "{error}");
    }
}

#[test]
fn active_waiting_deliveries_go_when_due() {
    assert_eq!(waiting(EndpointState::Active), Waiting::Goes);
}

#[test]
fn draining_waiting_deliveries_are_held() {
    assert_eq!(waiting(EndpointState::Draining), Waiting::Held);
}

#[test]
fn disabled_waiting_deliveries_are_dead_and_say_why() {
    assert_eq!(
        waiting(EndpointState::Disabled),
        Waiting::Dead(DeadReason::EndpointDisabled)
    );
}

#[test]
fn deleted_waiting_deliveries_are_dead_and_say_why() {
    assert_eq!(
        waiting(EndpointState::Deleted),
        Waiting::Dead(DeadReason::EndpointDeleted)
    );
}
