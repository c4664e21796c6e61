//! Pages of a list, forwards and backwards, as Svix clients walk them: `limit`, `iterator`, `order`, `before`,
//! `after`. The iterator is the id of a row; a `-` before it means backwards from there.
//!
//! A walk forwards and one back give each row exactly once, also while rows are being added, since a page is bound
//! to an id and not to an offset.

use crate::error::ApiError;
use crate::query::{Query, wrong};
use contract::{AppId, AttemptId, EndpointId, Instant, MessageId};
use serde::Serialize;
use std::fmt::Display;
use std::future::Future;
use std::str::FromStr;
use store::Page;

/// Rows of a page when nothing is said.
const USUAL: u32 = 50;
/// Most rows of a page.
const MOST: u32 = 250;
/// A filtered list reads at most so many rows a call; then it answers what it has, `done: false`, and goes on from
/// there on the next call.
const SCANNED_ROWS: usize = 10_000;
/// Messages and attempts older than this are listed only when a window asks for them.
const WINDOW_MS: i64 = 90 * 86_400_000;

/// An id that sorts by time.
pub(crate) trait TimeId: Copy + Ord + Display + FromStr + Send + Sync + 'static {
    /// The id of these bits.
    fn of(bits: u128) -> Self;
}

macro_rules! time_id {
    ($($name:ident),+) => { $(impl TimeId for $name { fn of(bits: u128) -> Self { Self::from_bits(bits) } })+ };
}
time_id!(AppId, EndpointId, MessageId, AttemptId);

/// Which page was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing<Id> {
    limit: u32,
    cursor: Option<Id>,
    backwards: bool,
    newest_first: bool,
    /// Only ids above this one.
    above: Option<Id>,
    /// Only ids below this one.
    below: Option<Id>,
}

/// A page as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListOut<T> {
    pub(crate) data: Vec<T>,
    pub(crate) iterator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prev_iterator: Option<String>,
    pub(crate) done: bool,
}

impl<Id: TimeId> Listing<Id> {
    /// Applications and endpoints: oldest first unless `order=descending`.
    pub(crate) fn ordered(query: &Query) -> Result<Self, ApiError> {
        let newest_first = match query.text("order") {
            None | Some("" | "ascending") => false,
            Some("descending") => true,
            Some(found) => return Err(wrong("order", found, "ascending or descending")),
        };
        Self::read(query, newest_first)
    }

    /// Messages and attempts: newest first, of the last 90 days unless a window is given.
    pub(crate) fn by_time(query: &Query, now: Instant) -> Result<Self, ApiError> {
        let mut listing = Self::read(query, true)?;
        let (before, after) = (query.time("before")?, query.time("after")?);
        let floor = match (before, after) {
            (None, None) => Some(Instant::from_unix_ms(now.as_unix_ms().saturating_sub(WINDOW_MS))),
            _ => after,
        };
        // Everything made within the millisecond `after` is left out, and within `before` too.
        listing.above = floor.map(|at| Id::of(bits_at(at.as_unix_ms().saturating_add(1)).saturating_sub(1)));
        listing.below = before.map(|at| Id::of(bits_at(at.as_unix_ms())));
        // `after` alone asks for the page next to it: read upwards, and answered newest first all the same.
        if after.is_some() && before.is_none() && listing.cursor.is_none() {
            listing.backwards = true;
        }
        Ok(listing)
    }

    fn read(query: &Query, newest_first: bool) -> Result<Self, ApiError> {
        let limit = query.number("limit", 1..=MOST)?.unwrap_or(USUAL);
        let given = query.text("iterator").filter(|text| !text.is_empty());
        let backwards = given.is_some_and(|text| text.starts_with('-'));
        let cursor = given
            .map(|text| {
                let id = text.strip_prefix('-').unwrap_or(text);
                id.parse()
                    .map_err(|_| wrong("iterator", text, "the `iterator` or `prevIterator` of a page"))
            })
            .transpose()?;
        Ok(Self {
            limit,
            cursor,
            backwards,
            newest_first,
            above: None,
            below: None,
        })
    }

    /// Reads the page from a store that gives rows by id.
    pub(crate) async fn collect<T, F>(
        &self,
        fetch: impl Fn(Page<Id>) -> F,
        id: impl Fn(&T) -> Id,
        keep: impl Fn(&T) -> bool,
    ) -> Result<ListOut<T>, ApiError>
    where
        F: Future<Output = store::Result<Vec<T>>>,
    {
        let wanted = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let downwards = self.newest_first != self.backwards;
        let (start, end) = if downwards {
            (self.below, self.above)
        } else {
            (self.above, self.below)
        };
        let beyond = |a: Id, b: Id| if downwards { a <= b } else { a >= b };
        let mut after = match (self.cursor, start) {
            // Whichever is further along: the window holds for every page of a walk.
            (Some(cursor), Some(start)) => Some(if beyond(cursor, start) { cursor } else { start }),
            (cursor, start) => cursor.or(start),
        };
        let mut rows: Vec<T> = Vec::new();
        let mut scanned = 0;
        let mut more = false;
        'reading: loop {
            let page = Page {
                limit: MOST.min(self.limit).saturating_add(1),
                after,
                newest_first: downwards,
            };
            let asked = usize::try_from(page.limit).unwrap_or(usize::MAX);
            let batch = fetch(page).await?;
            let (got, last) = (batch.len(), batch.last().map(&id));
            for row in batch {
                if end.is_some_and(|end| beyond(id(&row), end)) {
                    break 'reading;
                }
                if keep(&row) {
                    if rows.len() == wanted {
                        more = true;
                        break 'reading;
                    }
                    rows.push(row);
                }
            }
            scanned += got;
            after = last.or(after);
            if got < asked {
                break;
            }
            if scanned >= SCANNED_ROWS {
                more = true;
                return Ok(self.answer(rows, &id, more, after));
            }
        }
        Ok(self.answer(rows, &id, more, None))
    }

    /// `reached` is how far a filtered reading came, where that is further than its last row.
    fn answer<T>(
        &self,
        mut rows: Vec<T>,
        id: impl Fn(&T) -> Id,
        more: bool,
        reached: Option<Id>,
    ) -> ListOut<T> {
        if self.backwards {
            rows.reverse();
        }
        let (first, last) = (rows.first().map(&id), rows.last().map(&id));
        let (first, last) = if self.backwards {
            (reached.or(first), last)
        } else {
            (first, reached.or(last))
        };
        // An empty page repeats the cursor, so that a poller goes on from where it was.
        let stay = self.cursor.filter(|_| rows.is_empty() && !self.backwards);
        ListOut {
            iterator: last.or(stay).map(|id| id.to_string()),
            prev_iterator: first.map(|id| format!("-{id}")),
            data: rows,
            done: !more,
        }
    }

    /// The same page out of rows that are all at hand, in any order.
    pub(crate) fn cut<T>(&self, mut rows: Vec<T>, id: impl Fn(&T) -> Id) -> ListOut<T> {
        let downwards = self.newest_first != self.backwards;
        rows.retain(|row| {
            let this = id(row);
            let along = |cursor| if downwards { this < cursor } else { this > cursor };
            self.cursor.is_none_or(along)
                && self.above.is_none_or(|above| this > above)
                && self.below.is_none_or(|below| this < below)
        });
        rows.sort_by_key(&id);
        if downwards {
            rows.reverse();
        }
        let wanted = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > wanted;
        rows.truncate(wanted);
        self.answer(rows, id, more, None)
    }
}

impl<T> ListOut<T> {
    /// The same page with other rows.
    pub(crate) fn map<U>(self, into: impl FnMut(T) -> U) -> ListOut<U> {
        ListOut {
            data: self.data.into_iter().map(into).collect(),
            iterator: self.iterator,
            prev_iterator: self.prev_iterator,
            done: self.done,
        }
    }
}

/// The smallest id that something made in this Unix millisecond can have.
fn bits_at(ms: i64) -> u128 {
    const BELOW_TIME: u32 = 80;
    u128::try_from(ms)
        .unwrap_or(0)
        .checked_shl(BELOW_TIME)
        .unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u32 = 1001;

    fn ids(upto: u32) -> Vec<MessageId> {
        (1..=upto).map(|n| MessageId::of(u128::from(n) * 3)).collect()
    }

    /// A store of ids.
    fn fetch(rows: &[MessageId], page: Page<MessageId>) -> store::Result<Vec<MessageId>> {
        let beyond = |id: MessageId| {
            page.after
                .is_none_or(|after| if page.newest_first { id < after } else { id > after })
        };
        let mut rows: Vec<MessageId> = rows.iter().copied().filter(|id| beyond(*id)).collect();
        if page.newest_first {
            rows.reverse();
        }
        rows.truncate(usize::try_from(page.limit).unwrap());
        Ok(rows)
    }

    async fn page(rows: &[MessageId], query: &str, keep: impl Fn(&MessageId) -> bool) -> ListOut<MessageId> {
        let listing = Listing::<MessageId>::ordered(&Query::parse(query).unwrap()).unwrap();
        let read = listing
            .collect(|page| std::future::ready(fetch(rows, page)), |id| *id, &keep)
            .await
            .unwrap();
        if rows.iter().all(&keep) {
            let cut = listing.cut(rows.to_vec(), |id| *id);
            assert_eq!(cut.data, read.data, "both ways of making a page agree");
            assert_eq!((cut.done, cut.iterator), (read.done, read.iterator.clone()));
        }
        read
    }

    /// Walks forwards to the end and back; rows are added behind the walk all the while.
    async fn walk(limit: usize, order: &str) {
        let mut rows = ids(ROWS);
        let (mut forth, mut iterator) = (Vec::new(), None::<String>);
        let mut pages = 0;
        let prev = loop {
            let from = iterator.map_or_else(String::new, |at| format!("&iterator={at}"));
            let page = page(&rows, &format!("limit={limit}&order={order}{from}"), |_| true).await;
            forth.extend(page.data);
            pages += 1;
            if order == "descending" {
                rows.push(MessageId::of(u128::from(ROWS + pages) * 3));
            }
            if page.done {
                break page.prev_iterator.unwrap();
            }
            iterator = page.iterator;
        };
        let mut due = ids(ROWS);
        if order == "descending" {
            due.reverse();
        }
        assert_eq!(
            forth, due,
            "limit {limit} {order}: forth gives each row once, in order"
        );
        let (mut back, mut at) = (Vec::new(), prev);
        loop {
            let page = page(
                &rows,
                &format!("limit={limit}&order={order}&iterator={at}"),
                |_| true,
            )
            .await;
            back.splice(0..0, page.data.iter().copied());
            if page.done {
                break;
            }
            at = page.prev_iterator.unwrap();
        }
        let last_page = match forth.len() % limit {
            0 => limit,
            n => n,
        };
        forth.truncate(forth.len() - last_page);
        let back: Vec<MessageId> = back.into_iter().filter(|id| due.contains(id)).collect();
        assert_eq!(
            back, forth,
            "limit {limit} {order}: back gives each row once, in order"
        );
    }

    #[tokio::test]
    async fn a_walk_forth_and_back_gives_each_of_1001_rows_once_while_rows_are_added() {
        for limit in [1, 7, 50, 250] {
            walk(limit, "ascending").await;
            walk(limit, "descending").await;
        }
    }

    #[tokio::test]
    async fn the_iterator_is_there_even_when_done_and_an_empty_page_repeats_it() {
        let rows = ids(2);
        let first = page(&rows, "limit=2", |_| true).await;
        assert!(first.done);
        assert_eq!(first.iterator, Some(rows[1].to_string()));
        assert_eq!(first.prev_iterator, Some(format!("-{}", rows[0])));
        let beyond = page(&rows, &format!("iterator={}", rows[1]), |_| true).await;
        assert_eq!(
            (beyond.data.len(), beyond.done, beyond.prev_iterator),
            (0, true, None)
        );
        assert_eq!(beyond.iterator, Some(rows[1].to_string()));
        let none = page(&[], "", |_| true).await;
        assert_eq!((none.iterator, none.done), (None, true));
    }

    #[tokio::test]
    async fn a_filter_that_takes_little_answers_what_it_has_and_goes_on() {
        let rows = ids(25_000);
        let wanted = rows[24_000];
        let (mut found, mut iterator, mut calls) = (Vec::new(), String::new(), 0);
        loop {
            let page = page(&rows, &format!("iterator={iterator}"), |id| *id == wanted).await;
            calls += 1;
            found.extend(page.data);
            if page.done {
                break;
            }
            iterator = page.iterator.unwrap();
        }
        assert_eq!(found, [wanted]);
        assert_eq!(calls, 3);
    }

    #[test]
    fn before_and_after_leave_their_own_millisecond_out() {
        let at = |ms: i64| Instant::from_unix_ms(ms);
        let query = Query::parse("after=1970-01-01T00:00:01Z&before=1970-01-01T00:00:01.002Z").unwrap();
        let listing = Listing::<MessageId>::by_time(&query, at(0)).unwrap();
        let rows: Vec<MessageId> = [1000, 1001, 1002]
            .into_iter()
            .map(MessageId::at_unix_ms)
            .collect();
        assert_eq!(listing.cut(rows.clone(), |id| *id).data, [rows[1]]);
    }

    #[test]
    fn without_a_window_only_the_last_90_days_are_listed() {
        let now = Instant::from_unix_ms(100 * 86_400_000);
        let listing = Listing::<MessageId>::by_time(&Query::default(), now).unwrap();
        let rows = vec![
            MessageId::at_unix_ms(9 * 86_400_000),
            MessageId::at_unix_ms(11 * 86_400_000),
        ];
        assert_eq!(listing.cut(rows.clone(), |id| *id).data, [rows[1]]);
    }

    #[test]
    fn after_alone_reads_upwards_and_is_still_newest_first() {
        let query = Query::parse("after=1970-01-01T00:00:01Z&limit=2").unwrap();
        let listing = Listing::<MessageId>::by_time(&query, Instant::from_unix_ms(0)).unwrap();
        let rows: Vec<MessageId> = (1000..1005).map(MessageId::at_unix_ms).collect();
        let page = listing.cut(rows.clone(), |id| *id);
        assert_eq!((page.data, page.done), (vec![rows[2], rows[1]], false));
    }
}
