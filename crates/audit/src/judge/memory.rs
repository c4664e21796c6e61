//! A whole ledger in memory: what tests, simulations and small tools judge.

use super::{Judge, Options, Report};
use crate::facts::FactsError;
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};

/// Every record of a ledger, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The contracts that rows refer to.
    pub contracts: Vec<ContractRecord>,
    /// Accepted messages.
    pub messages: Vec<MessageRecord>,
    /// State changes of endpoints.
    pub endpoint_events: Vec<EndpointEvent>,
    /// What nodes saw.
    pub node_events: Vec<NodeEvent>,
    /// What happened to deliveries.
    pub delivery_events: Vec<DeliveryEvent>,
    /// Requests.
    pub attempts: Vec<AttemptRecord>,
}

impl Ledger {
    /// Hands every record to a judge.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn feed(&self, judge: &mut Judge) -> Result<(), FactsError> {
        self.contracts.iter().for_each(|record| judge.contract(record));
        self.endpoint_events
            .iter()
            .for_each(|event| judge.endpoint_event(event));
        self.node_events.iter().for_each(|event| judge.node_event(event));
        self.messages
            .iter()
            .try_for_each(|message| judge.message(message))?;
        self.delivery_events
            .iter()
            .try_for_each(|event| judge.delivery_event(event))?;
        self.attempts.iter().try_for_each(|row| judge.attempt(row))
    }

    /// Judges it.
    ///
    /// # Errors
    /// A temporary file cannot be written or read; a small ledger needs none.
    pub fn judge(&self, options: Options) -> Result<Report, FactsError> {
        let mut judge = Judge::new(options);
        self.feed(&mut judge)?;
        judge.finish()
    }
}
