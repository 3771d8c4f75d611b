//! The lists of a page: their entries, filtered and sorted.

use std::cmp::Ordering;

use lariat_console::api::{Cache, Controller, ControllerDetail, Handler, KeyDetail, KindRef};

use super::app::{App, Detail, Page, View};
use super::key_rows::key_rows;
use crate::console::tables::{self, Names, number};
use crate::console::{
    Column, Grid, Line, Row, Tone, amount, quantile, rate, run_lines, state_lines,
};

/// The columns of handlers.
const HANDLERS: [Column; 10] = [
    Column::text("HANDLER", 0),
    Column::number("CALLS", 4),
    Column::number("CALLS/S", 1),
    Column::number("ERRORS/S", 0),
    Column::number("P50", 5),
    Column::number("P99", 3),
    Column::number("RETRIES", 6),
    Column::number("WAITING", 4),
    Column::number("FAILING", 2),
    Column::text("STATE", 5),
];

/// A list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Content {
    /// The columns; none for lines of text.
    pub(super) columns: Vec<Column>,
    pub(super) entries: Vec<Entry>,
    /// How many entries there are without the filter.
    pub(super) all: usize,
}

/// An entry: a row of a table, or a line of text in its only cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Entry {
    /// What it is, whatever place it has.
    pub(super) id: String,
    pub(super) row: Row,
    /// What to sort by, for the first columns.
    order: Vec<Order>,
    /// The page that it opens.
    target: Option<Page>,
}

#[derive(Debug, Clone, PartialEq)]
enum Order {
    /// The first letter first.
    Text(String),
    /// The largest number first.
    Number(f64),
}

impl App {
    /// Returns the list that has the selection.
    pub(super) fn content(&self) -> Content {
        Content::of(self, self.view().list)
    }
}

impl Content {
    /// Returns a list of the page that is shown.
    pub(super) fn of(app: &App, list: usize) -> Self {
        let view = app.view();
        let mut content = match (&view.page, &view.detail) {
            (Page::Home, _) => home(app, list),
            (Page::Controller(_), Some(Ok(Detail::Controller(detail)))) if list == 0 => {
                handlers(detail)
            }
            (Page::Controller(kind), Some(Ok(Detail::Controller(detail)))) => keys(detail, kind),
            (Page::Key(..), Some(Ok(Detail::Key(detail)))) => lines(detail),
            _ => Self::default(),
        };
        content.all = content.entries.len();
        // The filter and the order are about the list with the selection; another list of the page is shown whole.
        if list == view.list {
            content.arrange(view);
        }
        content
    }

    fn of_grid(
        grid: Grid,
        entries: impl Iterator<Item = (String, Vec<Order>, Option<Page>)>,
    ) -> Self {
        let rows = grid.rows.into_iter().zip(entries);
        Self {
            columns: grid.columns,
            entries: rows
                .map(|(row, (id, order, target))| Entry {
                    id,
                    row,
                    order,
                    target,
                })
                .collect(),
            all: 0,
        }
    }

    /// Filters and sorts.
    fn arrange(&mut self, view: &View) {
        let wanted = view.filter.to_lowercase();
        let has = |entry: &Entry| {
            entry
                .row
                .cells
                .iter()
                .any(|cell| cell.to_lowercase().contains(&wanted))
        };
        // The keys of a handler are found by its name, which is not in every cell.
        self.entries
            .retain(|entry| has(entry) || entry.id.to_lowercase().contains(&wanted));
        if let Some(column) = view.sort {
            let compared =
                |one: &Entry, other: &Entry| match (one.order.get(column), other.order.get(column))
                {
                    (Some(Order::Text(one)), Some(Order::Text(other))) => one.cmp(other),
                    (Some(Order::Number(one)), Some(Order::Number(other))) => other.total_cmp(one),
                    // Lines of text have no order. The sort is stable, so they keep their places.
                    _ => Ordering::Equal,
                };
            self.entries.sort_by(compared);
        }
        // Also without a column: then the order of the server is reversed.
        if view.is_reversed {
            self.entries.reverse();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| &entry.id[..])
    }

    /// Returns how many of the columns can be sorted by.
    pub(super) fn sortable(&self) -> usize {
        self.entries.first().map_or(0, |entry| entry.order.len())
    }

    /// Returns the page that an entry opens.
    pub(super) fn target(&self, at: usize) -> Option<Page> {
        self.entries.get(at)?.target.clone()
    }

    /// Returns it as a table.
    pub(super) fn grid(&self) -> Grid {
        Grid {
            columns: self.columns.clone(),
            rows: self.entries.iter().map(|entry| entry.row.clone()).collect(),
        }
    }
}

fn home(app: &App, list: usize) -> Content {
    let overview = &app.overview;
    let names = Names::of(overview);
    match list {
        0 => {
            let all: Vec<&Controller> = overview.controllers.iter().collect();
            let entries = overview.controllers.iter().map(|it| {
                let page = Page::Controller(it.kind.clone());
                (
                    names.name(&it.kind),
                    controller_order(it, names),
                    Some(page),
                )
            });
            Content::of_grid(tables::controllers(&all, names), entries)
        }
        1 => {
            let all: Vec<&Cache> = overview.caches.iter().collect();
            let entries = overview.caches.iter().map(|it| {
                let name = names.name(&it.kind);
                let numbers = [it.objects, it.bytes].map(count);
                let order = std::iter::once(Order::Text(name.clone()))
                    .chain(numbers)
                    .collect();
                // A kind may be cached for reads only; there are pages of controllers alone.
                let has_controller = overview.controllers.iter().any(|each| each.kind == it.kind);
                let page = has_controller.then(|| Page::Controller(it.kind.clone()));
                (name, order, page)
            });
            Content::of_grid(tables::caches(&all, names), entries)
        }
        _ => {
            let grid = tables::facts(overview, names);
            let ids: Vec<String> = grid
                .rows
                .iter()
                // The first two columns say what it is; the others change over time.
                .map(|row| row.cells[..2].join(" "))
                .collect();
            let loops = grid
                .rows
                .len()
                // The hot loops are the last rows of `tables::facts`, before the one of the plan mode.
                .saturating_sub(overview.hot_loops.len() + usize::from(overview.planned.is_some()));
            let pages = (0..ids.len()).map(|at| {
                let found = overview.hot_loops.get(at.checked_sub(loops)?)?;
                Some(Page::Key(found.kind.clone(), found.key.clone()))
            });
            let pages: Vec<Option<Page>> = pages.collect();
            let entries = ids
                .into_iter()
                .zip(pages)
                .map(|(id, page)| (id, Vec::new(), page));
            Content::of_grid(grid, entries)
        }
    }
}

fn controller_order(controller: &Controller, names: Names) -> Vec<Order> {
    let (calls, failures) = tables::rates(controller);
    let queue = &controller.queue;
    vec![
        Order::Text(names.name(&controller.kind)),
        count(queue.ready),
        count(queue.delayed),
        count(queue.processing),
        Order::Number(calls),
        Order::Number(failures),
        count(tables::failing(controller)),
        count(controller.objects),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "it is for an order")]
fn count(number: usize) -> Order {
    Order::Number(number as f64)
}

fn handlers(detail: &ControllerDetail) -> Content {
    let row = |it: &Handler| {
        let state = handler_state(it);
        let tone = match (it.failing + it.given_up, &it.blocked) {
            (1.., _) => Tone::Bad,
            (0, Some(_)) => Tone::Warn,
            (0, None) => Tone::Plain,
        };
        let cells = vec![
            it.name.clone(),
            amount(it.calls),
            rate(it.rate),
            rate(it.failure_rate),
            quantile(&it.time, it.time.p50),
            quantile(&it.time, it.time.p99),
            amount(it.retries),
            number(it.waiting),
            number(it.failing),
            state,
        ];
        Row { cells, tone }
    };
    let handlers = &detail.controller.handlers;
    let grid = Grid {
        columns: HANDLERS.to_vec(),
        rows: handlers.iter().map(row).collect(),
    };
    #[expect(clippy::cast_precision_loss, reason = "it is for an order")]
    let order = |it: &Handler| {
        let numbers = [
            it.calls as f64,
            it.rate,
            it.failure_rate,
            it.time.p50,
            it.time.p99,
        ];
        let text = Order::Text(it.name.clone());
        std::iter::once(text)
            .chain(numbers.map(Order::Number))
            .collect()
    };
    let entries = handlers.iter().map(|it| (it.name.clone(), order(it), None));
    Content::of_grid(grid, entries)
}

/// Returns the most urgent fact about a handler, because there is room for one.
fn handler_state(it: &Handler) -> String {
    match (it.given_up, &it.blocked, it.timeouts, it.panics) {
        (1.., ..) => format!("{} given up", number(it.given_up)),
        (0, Some(blocked), ..) => blocked.clone(),
        (0, None, 1.., _) => format!("{} timed out", amount(it.timeouts)),
        (0, None, 0, 1..) => format!("{} panicked", amount(it.panics)),
        (0, None, 0, 0) => String::new(),
    }
}

fn keys(detail: &ControllerDetail, kind: &KindRef) -> Content {
    let columns = vec![
        Column::text("KEY", 0),
        Column::text("STATE", 0),
        Column::text("HANDLER", 2),
        Column::number("FOR", 1),
        Column::text("DETAIL", 3),
    ];
    let rows = key_rows(detail);
    let grid = Grid {
        columns,
        rows: rows
            .iter()
            .map(|it| Row {
                cells: vec![
                    it.key.clone(),
                    it.states.join(", "),
                    it.handlers.join(", "),
                    it.since.clone(),
                    it.details.join("; "),
                ],
                tone: if it.is_bad { Tone::Bad } else { Tone::Plain },
            })
            .collect(),
    };
    let entries = rows.iter().map(|it| {
        let order = vec![
            Order::Text(it.key.clone()),
            Order::Text(it.states.join(", ")),
        ];
        (
            it.key.clone(),
            order,
            Some(Page::Key(kind.clone(), it.key.clone())),
        )
    });
    Content::of_grid(grid, entries)
}

/// Returns the history of a key, newest run first.
fn lines(detail: &KeyDetail) -> Content {
    let mut entries = Vec::new();
    let mut add = |part: &str, lines: Vec<Line>| {
        for (at, line) in lines.into_iter().enumerate() {
            let target = line.link.map(|link| Page::Key(link.kind, link.key));
            let mark = if target.is_some() { " ⏎" } else { "" };
            entries.push(Entry {
                id: format!("{part} {at}"),
                row: Row {
                    cells: vec![format!("{}{mark}", line.text)],
                    tone: line.tone,
                },
                order: Vec::new(),
                target,
            });
        }
    };
    add("state", state_lines(detail));
    for run in &detail.runs {
        add(&run.run.to_string(), run_lines(run));
    }
    Content {
        columns: Vec::new(),
        entries,
        all: 0,
    }
}
