//! Which function answers which call of the trait.

use super::admin::NewEndpoint;
use super::writer::{Lost, Place, WeakQueue};
use super::{SqliteStore, accept, admin, deliveries, nodes, read, registry, retain, settle};
use crate::{
    Accepted, App, AppFields, AppKey, Attempt, Change, Claim, Claimed, CommitStats, ContractKey, Counts,
    Delivery, DeliveryKey, Due, Endpoint, EndpointFields, EndpointKey, LedgerSink, Level, Message,
    MessageKey, NewMessage, NotClaimed, Page, Reading, Redrive, Result, Retain, Retained, Secret, Settle,
    Settled, StartGate, Started, Store, StoredContract, Token, Tombstones,
};
use async_trait::async_trait;
use contract::ledger::{EndpointEvent, EndpointState, NodeEventKind};
use contract::{AppId, AttemptId, BootInstant, EndpointId, Instant, MessageId, TokenId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::broadcast;

/// Takes claims back whose caller went away before it heard of them: they were never sent.
fn take_back(queue: &WeakQueue, claims: Vec<Claimed>) {
    let Some(queue) = queue.get() else {
        return;
    };
    if claims.is_empty() {
        return;
    }
    queue.post(move |work| {
        for claimed in &claims {
            settle::release(work, claimed)?;
            work.changes.push(Change::Work(claimed.due.endpoint));
        }
        Ok(())
    });
}

type SettledAndClaimed = (Vec<Settled>, Vec<std::result::Result<Claimed, NotClaimed>>);

#[async_trait]
impl Store for SqliteStore {
    async fn node_up(&self, node: &str, boot_id: &str, now: Reading) -> Result<Started> {
        let (node, boot_id) = (node.to_owned(), boot_id.to_owned());
        let (started, boot) = self
            .write(move |work| nodes::up(work, &node, &boot_id, &now))
            .await?;
        self.shared.boot.store(boot, Ordering::Relaxed);
        Ok(started)
    }

    async fn node_event(&self, node: &str, kind: NodeEventKind, now: Reading, size_ms: i64) -> Result<()> {
        let node = node.to_owned();
        self.write(move |work| nodes::event(work, &node, kind, &now, size_ms))
            .await
    }

    async fn heartbeat(&self, node: &str, now: Reading) -> Result<()> {
        let node = node.to_owned();
        self.write(move |work| nodes::heartbeat(work, &node, &now)).await
    }

    async fn close(&self) -> Result<()> {
        self.end().await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    async fn accept(&self, message: NewMessage, gate: Arc<dyn StartGate>) -> Result<Accepted> {
        let queue = self.queue()?;
        let (weak, reserved) = (queue.downgrade(), Arc::clone(&gate));
        let lost: Lost<Accepted> = Box::new(move |accepted| {
            for claimed in &accepted.claimed {
                reserved.release(claimed.due.endpoint);
            }
            take_back(&weak, accepted.claimed);
        });
        let todo = move |work: &mut super::Work<'_>| accept::accept(work, &message, &gate);
        queue.call(Place::OrRefuse, todo, Some(lost)).await
    }

    async fn settle_and_claim(&self, settles: Vec<Settle>, claims: Vec<Claim>) -> Result<SettledAndClaimed> {
        let queue = self.queue()?;
        let weak = queue.downgrade();
        let lost: Lost<SettledAndClaimed> =
            Box::new(move |(_, claimed)| take_back(&weak, claimed.into_iter().flatten().collect()));
        let todo = move |work: &mut super::Work<'_>| {
            let settled = settles
                .iter()
                .map(|one| settle::settle(work, one))
                .collect::<Result<_, _>>()?;
            let claimed = claims
                .into_iter()
                .map(|one| settle::claim(work, one))
                .collect::<Result<_, _>>()?;
            Ok((settled, claimed))
        };
        queue.call(Place::OrWait, todo, Some(lost)).await
    }

    async fn due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
        limit: usize,
        except: &[DeliveryKey],
    ) -> Result<Vec<Due>> {
        let (boot, except) = (self.boot(), except.to_vec());
        self.readers
            .read(move |conn| read::due::due(conn, boot, endpoint, &now, limit, &except))
            .await
    }

    async fn next_due(
        &self,
        endpoint: EndpointKey,
        now: Reading,
    ) -> Result<Option<(Instant, Option<BootInstant>)>> {
        let boot = self.boot();
        self.readers
            .read(move |conn| read::due::next_due(conn, boot, endpoint, &now))
            .await
    }

    async fn sending(&self, after: Option<DeliveryKey>, limit: usize) -> Result<Vec<Claimed>> {
        self.readers
            .read(move |conn| read::due::sending(conn, after, limit))
            .await
    }

    async fn bury(&self, endpoint: EndpointKey, now: Instant, limit: usize) -> Result<u64> {
        self.write(move |work| deliveries::bury(work, endpoint, now, limit))
            .await
    }

    async fn expire(&self, deliveries: Vec<(DeliveryKey, ContractKey)>, now: Instant) -> Result<u64> {
        self.write(move |work| deliveries::expire(work, &deliveries, now))
            .await
    }

    async fn set_failing_since(&self, endpoint: EndpointKey, since: Option<Instant>) -> Result<()> {
        self.write(move |work| admin::set_failing_since(work, endpoint, since))
            .await
    }

    async fn create_app(&self, fields: AppFields, now: Instant) -> Result<App> {
        self.write(move |work| admin::create_app(work, &fields, now))
            .await
    }

    async fn update_app(&self, app: AppKey, fields: AppFields, now: Instant) -> Result<App> {
        self.write(move |work| admin::update_app(work, app, &fields, now))
            .await
    }

    async fn app(&self, id_or_uid: &str) -> Result<Option<App>> {
        let wanted = id_or_uid.to_owned();
        self.readers
            .read(move |conn| read::admin::app(conn, &wanted))
            .await
    }

    async fn apps(&self, page: Page<AppId>) -> Result<Vec<App>> {
        self.readers
            .read(move |conn| read::admin::apps(conn, &page))
            .await
    }

    async fn delete_app(&self, app: AppKey, by: &str, now: Instant) -> Result<()> {
        let by = by.to_owned();
        self.write(move |work| admin::delete_app(work, app, &by, now))
            .await
    }

    async fn create_endpoint(
        &self,
        app: AppKey,
        fields: EndpointFields,
        state: EndpointState,
        secret: Secret,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint> {
        let new = NewEndpoint {
            app,
            fields,
            state,
            secret,
            by: by.to_owned(),
            now,
        };
        self.write(move |work| admin::create_endpoint(work, &new)).await
    }

    async fn update_endpoint(
        &self,
        endpoint: EndpointKey,
        fields: EndpointFields,
        now: Instant,
    ) -> Result<Endpoint> {
        self.write(move |work| admin::update_endpoint(work, endpoint, &fields, now))
            .await
    }

    async fn set_secrets(&self, endpoint: EndpointKey, secrets: Vec<Secret>, now: Instant) -> Result<()> {
        self.write(move |work| admin::set_secrets(work, endpoint, &secrets, now))
            .await
    }

    async fn set_endpoint_state(
        &self,
        endpoint: EndpointKey,
        state: EndpointState,
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Endpoint> {
        let (why, by) = (why.to_owned(), by.to_owned());
        self.write(move |work| admin::set_endpoint_state(work, endpoint, state, &why, &by, now))
            .await
    }

    async fn endpoint(&self, app: AppKey, id_or_uid: &str) -> Result<Option<Endpoint>> {
        let wanted = id_or_uid.to_owned();
        self.readers
            .read(move |conn| read::admin::endpoint(conn, app, &wanted))
            .await
    }

    async fn endpoint_by_key(&self, endpoint: EndpointKey) -> Result<Option<Endpoint>> {
        self.readers
            .read(move |conn| read::admin::endpoint_by_key(conn, endpoint))
            .await
    }

    async fn endpoint_by_id(&self, id: EndpointId) -> Result<Option<Endpoint>> {
        self.readers
            .read(move |conn| read::admin::endpoint_by_id(conn, id))
            .await
    }

    async fn last_endpoint_event(&self, endpoint: EndpointKey) -> Result<Option<EndpointEvent>> {
        self.readers
            .read(move |conn| read::admin::last_endpoint_event(conn, endpoint))
            .await
    }

    async fn endpoints(&self, app: Option<AppKey>, page: Page<EndpointId>) -> Result<Vec<Endpoint>> {
        self.readers
            .read(move |conn| read::admin::endpoints(conn, app, &page))
            .await
    }

    async fn endpoints_to_serve(&self) -> Result<Vec<Endpoint>> {
        self.readers.read(read::admin::endpoints_to_serve).await
    }

    async fn put_contract(&self, rev: &str, canonical: &str) -> Result<ContractKey> {
        let (rev, canonical) = (rev.to_owned(), canonical.to_owned());
        self.write(move |work| admin::put_contract(work, &rev, &canonical))
            .await
    }

    async fn set_contract(&self, level: Level, contract: Option<ContractKey>) -> Result<()> {
        self.write(move |work| admin::set_contract(work, level, contract))
            .await
    }

    async fn organisation_contract(&self) -> Result<Option<ContractKey>> {
        self.readers.read(read::admin::organisation_contract).await
    }

    async fn app_contracts(&self) -> Result<Vec<(AppKey, ContractKey)>> {
        self.readers.read(read::admin::app_contracts).await
    }

    async fn contract(&self, contract: ContractKey) -> Result<Option<StoredContract>> {
        self.readers
            .read(move |conn| read::admin::contract(conn, contract))
            .await
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        self.write(move |work| admin::put_token(work, &token)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.readers.read(read::admin::tokens).await
    }

    async fn revoke_token(&self, id: TokenId, now: Instant) -> Result<()> {
        self.write(move |work| admin::revoke_token(work, id, now)).await
    }

    async fn message(&self, app: AppKey, id_or_event_id: &str) -> Result<Option<Message>> {
        let wanted = id_or_event_id.to_owned();
        self.readers
            .read(move |conn| read::messages::message(conn, app, &wanted))
            .await
    }

    async fn message_by_id(&self, id: MessageId) -> Result<Option<Message>> {
        self.readers
            .read(move |conn| read::messages::message_by_id(conn, id))
            .await
    }

    async fn messages(&self, app: AppKey, page: Page<MessageId>) -> Result<Vec<Message>> {
        self.readers
            .read(move |conn| read::messages::messages(conn, app, &page))
            .await
    }

    async fn deliveries(&self, message: MessageId) -> Result<Vec<Delivery>> {
        self.readers
            .read(move |conn| read::messages::deliveries(conn, message))
            .await
    }

    async fn attempts(&self, message: MessageId, endpoint: Option<EndpointKey>) -> Result<Vec<Attempt>> {
        self.readers
            .read(move |conn| read::messages::attempts(conn, message, endpoint))
            .await
    }

    async fn attempts_of_endpoint(
        &self,
        endpoint: EndpointKey,
        page: Page<AttemptId>,
    ) -> Result<Vec<Attempt>> {
        self.readers
            .read(move |conn| read::messages::attempts_of_endpoint(conn, endpoint, &page))
            .await
    }

    async fn attempt(&self, id: AttemptId) -> Result<Option<Attempt>> {
        self.readers
            .read(move |conn| read::messages::attempt_by_id(conn, id))
            .await
    }

    async fn redrive(&self, redrive: Redrive) -> Result<Delivery> {
        self.write(move |work| deliveries::redrive(work, &redrive)).await
    }

    async fn dead(
        &self,
        endpoint: EndpointKey,
        after: Option<DeliveryKey>,
        limit: usize,
    ) -> Result<Vec<Delivery>> {
        self.readers
            .read(move |conn| read::messages::dead(conn, endpoint, after, limit))
            .await
    }

    async fn cancel(&self, delivery: DeliveryKey, why: &str, now: Instant) -> Result<bool> {
        let why = why.to_owned();
        self.write(move |work| deliveries::cancel(work, delivery, &why, now))
            .await
    }

    async fn counts(&self) -> Result<Counts> {
        if self.owner.is_some() {
            return Ok(self.shared.counts());
        }
        self.readers.read(registry::count).await
    }

    fn commit_stats(&self) -> CommitStats {
        self.shared.meter.read()
    }

    async fn retain(
        &self,
        what: Retain,
        before: Instant,
        after: Option<MessageKey>,
        limit: usize,
    ) -> Result<Retained> {
        self.write(move |work| retain::retain(work, what, before, after, limit))
            .await
    }

    async fn tombstones(&self) -> Result<Tombstones> {
        self.readers.read(retain::tombstones).await
    }

    async fn read_ledger(&self, sink: Box<dyn LedgerSink>) -> Result<Box<dyn LedgerSink>> {
        let stream = |conn: &rusqlite::Connection| {
            let mut sink = sink;
            // One read transaction is one moment.
            let moment = conn.unchecked_transaction()?;
            read::ledger::stream(conn, sink.as_mut())?;
            moment.finish()?;
            Ok(sink)
        };
        self.readers.read_long(stream).await
    }
}
