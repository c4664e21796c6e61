//! The two state machines (spec/engine.md): one exhaustive match each, every illegal pair spelled out.
//!
//! A state or event that is added later does not compile until someone has decided what it means.

use contract::ledger::{DeadReason, EndpointState};

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Has a due time.
    Pending,
    /// An attempt is written down as started.
    Sending,
    /// A receiver answered within the success set.
    Succeeded,
    /// Nothing more is tried.
    Dead,
    /// By a person, or superseded.
    Cancelled,
}

/// What can happen to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryEvent {
    /// Its next attempt is written down as started.
    Claim,
    /// What was claimed was never sent, and is taken back (shutdown).
    Release,
    /// The attempt was settled: a success.
    Succeed,
    /// The attempt was settled: a failure with attempts left.
    Retry,
    /// The attempt was settled: a failure, and nothing more is tried.
    GiveUp,
    /// It grew too old while it waited.
    Expire,
    /// Its endpoint was disabled or deleted while it waited.
    Bury,
    /// A person cancelled it.
    Cancel,
    /// A resend or redrive opened the next delivery number.
    Supersede,
}

/// A pair of state and event that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery that is {state:?} cannot {event:?}")]
pub struct IllegalTransition {
    /// The state it was in.
    pub state: DeliveryState,
    /// What was to happen to it.
    pub event: DeliveryEvent,
}

/// The state after an event.
///
/// # Errors
/// The pair, when it is illegal.
pub fn transition(state: DeliveryState, event: DeliveryEvent) -> Result<DeliveryState, IllegalTransition> {
    use DeliveryEvent as E;
    use DeliveryState as S;
    match (state, event) {
        (S::Pending, E::Claim) => Ok(S::Sending),
        (S::Pending, E::Expire | E::Bury) => Ok(S::Dead),
        (S::Pending, E::Cancel | E::Supersede) => Ok(S::Cancelled),
        (S::Pending, E::Release | E::Succeed | E::Retry | E::GiveUp) => {
            Err(IllegalTransition { state, event })
        }

        (S::Sending, E::Succeed) => Ok(S::Succeeded),
        (S::Sending, E::Retry | E::Release) => Ok(S::Pending),
        (S::Sending, E::GiveUp) => Ok(S::Dead),
        (S::Sending, E::Supersede) => Ok(S::Cancelled),
        (S::Sending, E::Claim | E::Expire | E::Bury | E::Cancel) => Err(IllegalTransition { state, event }),

        (
            S::Succeeded | S::Dead | S::Cancelled,
            E::Claim
            | E::Release
            | E::Succeed
            | E::Retry
            | E::GiveUp
            | E::Expire
            | E::Bury
            | E::Cancel
            | E::Supersede,
        ) => Err(IllegalTransition { state, event }),
    }
}

/// What can be asked of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointEvent {
    /// Receive.
    Activate,
    /// Hold what waits.
    Drain,
    /// Take nothing.
    Disable,
    /// Go.
    Delete,
}

/// A pair of endpoint state and event that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an endpoint that is {state} cannot {event:?}")]
pub struct IllegalEndpointTransition {
    /// The state it was in.
    pub state: EndpointState,
    /// What was asked.
    pub event: EndpointEvent,
}

/// The state of an endpoint after an event. The state it has already is legal and changes nothing.
///
/// # Errors
/// The pair, when it is illegal: a deleted endpoint stays deleted.
pub fn endpoint_transition(
    state: EndpointState,
    event: EndpointEvent,
) -> Result<EndpointState, IllegalEndpointTransition> {
    use EndpointEvent as E;
    use EndpointState as S;
    match (state, event) {
        (S::Active | S::Draining | S::Disabled, E::Activate) => Ok(S::Active),
        (S::Active | S::Draining | S::Disabled, E::Drain) => Ok(S::Draining),
        (S::Active | S::Draining | S::Disabled, E::Disable) => Ok(S::Disabled),
        (S::Active | S::Draining | S::Disabled, E::Delete) => Ok(S::Deleted),
        (S::Deleted, E::Activate | E::Drain | E::Disable | E::Delete) => {
            Err(IllegalEndpointTransition { state, event })
        }
    }
}

/// What becomes of a delivery that waits at an endpoint, and of a new one that is opened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It goes when it is due.
    Goes,
    /// It is held.
    Held,
    /// It is dead for this reason, and can be redriven.
    Dead(DeadReason),
}

/// What an endpoint's state does to a delivery that waits there. Sending is an allow-list of one (I4).
#[must_use]
pub fn waiting(state: EndpointState) -> Waiting {
    let let_through = cfg!(feature = "bug-draining-let-through") && state == EndpointState::Draining;
    if state == EndpointState::Active || let_through {
        return Waiting::Goes;
    }
    match state {
        EndpointState::Disabled => Waiting::Dead(DeadReason::EndpointDisabled),
        EndpointState::Deleted => Waiting::Dead(DeadReason::EndpointDeleted),
        EndpointState::Draining | EndpointState::Active => Waiting::Held,
    }
}
