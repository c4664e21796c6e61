//! The demo's live view: one row a receiver, one character a message. Off a terminal it prints a line a request.

use crate::receiver::Received;
use crate::ui;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What the rows and lines of the demo are made of.
pub(super) struct Board {
    rows: Vec<ProgressBar>,
    bars: MultiProgress,
    view: View,
    state: Mutex<State>,
}

/// How it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// A terminal: rows that change in place.
    Rows,
    /// A pipe or a file: one line a request.
    Lines,
    /// A program reads: nothing but the result.
    Silent,
}

struct State {
    names: Vec<&'static str>,
    /// A message's column.
    columns: HashMap<String, usize>,
    rows: Vec<Row>,
}

#[derive(Clone)]
struct Row {
    cells: Vec<Cell>,
    requests: usize,
    note: &'static str,
    received: Vec<Received>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Waiting,
    Failed(u32),
    Delivered,
}

impl Board {
    pub(super) fn new(names: &[&'static str], messages: usize, view: View) -> Self {
        let bars = MultiProgress::new();
        if view != View::Rows {
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{prefix:>9}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &&'static str| {
            let bar = bars.add(ProgressBar::new_spinner());
            bar.set_style(style.clone());
            bar.set_prefix(*name);
            bar
        };
        let rows: Vec<_> = names.iter().map(bar).collect();
        let row = Row {
            cells: vec![Cell::Waiting; messages],
            requests: 0,
            note: "",
            received: Vec::new(),
        };
        let state = State {
            names: names.to_vec(),
            columns: HashMap::new(),
            rows: vec![row; names.len()],
        };
        let board = Self {
            rows,
            bars,
            view,
            state: Mutex::new(state),
        };
        (0..names.len()).for_each(|n| board.draw(n, &board.lock()));
        board
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step of the story.
    pub(super) fn step(&self, text: &str) {
        match self.view {
            View::Rows => {
                let _ = self
                    .bars
                    .println(format!("{} {text}", ui::paint("▸", ui::GREEN, ui::color())));
            }
            View::Lines => ui::say(format_args!("▸ {text}")),
            View::Silent => {}
        }
    }

    /// A request came to this receiver.
    pub(super) fn request(&self, receiver: usize, received: &Received) {
        let mut state = self.lock();
        let id = received.message_id.clone().unwrap_or_default();
        let column = state.column(&id);
        let row = &mut state.rows[receiver];
        row.requests += 1;
        row.received.push(received.clone());
        let delivered = received
            .status
            .is_some_and(|status| (200..=299).contains(&status));
        if let Some(cell) = row.cells.get_mut(column) {
            *cell = match *cell {
                _ if delivered => Cell::Delivered,
                Cell::Delivered => Cell::Delivered,
                Cell::Waiting => Cell::Failed(1),
                Cell::Failed(n) => Cell::Failed(n + 1),
            };
        }
        if self.view == View::Lines {
            ui::say(line(state.names[receiver], column, received));
        }
        self.draw(receiver, &state);
    }

    /// A word behind a receiver's row, as `draining`.
    pub(super) fn note(&self, receiver: usize, note: &'static str) {
        let mut state = self.lock();
        state.rows[receiver].note = note;
        self.draw(receiver, &state);
    }

    /// How many messages this receiver has answered with a success.
    pub(super) fn delivered(&self, receiver: usize) -> usize {
        self.lock().rows[receiver]
            .cells
            .iter()
            .filter(|cell| **cell == Cell::Delivered)
            .count()
    }

    /// Everything this receiver has seen.
    pub(super) fn received(&self, receiver: usize) -> Vec<Received> {
        self.lock().rows[receiver].received.clone()
    }

    /// The rows stay as they are; nothing more is drawn.
    pub(super) fn finish(&self) {
        self.rows.iter().for_each(ProgressBar::abandon);
    }

    fn draw(&self, receiver: usize, state: &State) {
        let row = &state.rows[receiver];
        let cells: String = row.cells.iter().map(|cell| cell.shown(ui::color())).collect();
        let note = if row.note.is_empty() {
            String::new()
        } else {
            format!("  {}", row.note)
        };
        self.rows[receiver].set_message(format!("{cells}  {} requests{note}", row.requests));
        self.rows[receiver].tick();
    }
}

impl State {
    /// The message's column: the next free one when it is seen first.
    fn column(&mut self, id: &str) -> usize {
        let next = self.columns.len();
        *self.columns.entry(id.to_owned()).or_insert(next)
    }
}

impl Cell {
    fn shown(self, color: bool) -> String {
        match self {
            Self::Waiting => ui::paint("·", ui::DIM, color),
            Self::Failed(n) => ui::paint(&n.min(9).to_string(), ui::YELLOW, color),
            Self::Delivered => ui::paint("✓", ui::GREEN, color),
        }
    }
}

/// `21:03:04.123  flaky     message 12  attempt 2 → 500`
fn line(name: &str, column: usize, received: &Received) -> String {
    let status = received.status.map_or_else(
        || "no answer: the sender is gone".to_owned(),
        |status| status.to_string(),
    );
    format!(
        "{}  {name:<9} message {:>2}  attempt {}  → {status}",
        ui::clock(received.arrival_ms),
        column + 1,
        received.attempt_no.unwrap_or(0),
    )
}
