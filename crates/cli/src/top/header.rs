//! The lines above the lists.

use lariat_console::api::Controller;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::app::{App, Detail, Page};
use super::content::Content;
use super::lists::Theme;
use crate::console::tables::{self, Names, number};
use crate::console::{
    Tone, bytes, counted, duration, full_name, padded, quantile, rate, shortened, width,
};

/// Returns the lines above the list: the program, its numbers, what is wrong, where the user is.
pub(super) fn header(app: &App, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let overview = &app.overview;
    let program = &overview.program;
    let mut name = program.name.clone();
    if let Some(version) = &program.version {
        name.push_str(&format!(" {version}"));
    }
    let state = if overview.health.ready {
        "ready"
    } else {
        "NOT READY"
    };
    let left = format!(
        "{name} · {state} · up {} · {}",
        duration(program.uptime),
        app.place
    );
    let mark = if app.lost.is_some() { "LOST" } else { "live" };
    // The mark stays at the right edge; a long name of the program is cut instead.
    let left = padded(&left, room.saturating_sub(mark.len() + 1), false);
    let tone = if overview.health.ready {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let style = theme.style(if app.lost.is_some() {
        Tone::Bad
    } else {
        Tone::Good
    });
    let mut lines = vec![Line::from(vec![
        Span::styled(
            format!("{left} "),
            theme.style(tone).add_modifier(Modifier::BOLD),
        ),
        Span::styled(mark, style.add_modifier(Modifier::BOLD)),
    ])];
    match (&app.view().page, &app.view().detail) {
        (Page::Home, _) => {
            lines.push(Line::raw(shortened(&totals(app), room)));
            lines.extend(alarm(app, theme, room));
            lines.push(tabs(app, theme));
        }
        (Page::Controller(_), Some(Ok(Detail::Controller(detail)))) => {
            let texts = controller(&detail.controller);
            lines.extend(texts.map(|text| Line::raw(shortened(&text, room))));
            lines.push(path(app, theme, room));
        }
        _ => lines.push(path(app, theme, room)),
    }
    lines
}

/// Returns the sums over all controllers.
fn totals(app: &App) -> String {
    let controllers = &app.overview.controllers;
    let queues = || controllers.iter().map(|it| &it.queue);
    let due: usize = queues().map(|queue| queue.ready).sum();
    let delayed: usize = queues().map(|queue| queue.delayed).sum();
    let busy: usize = queues().map(|queue| queue.processing).sum();
    let workers: usize = controllers.iter().filter_map(|it| it.workers).sum();
    let (calls, failures) = controllers
        .iter()
        .map(tables::rates)
        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let size: usize = app.overview.caches.iter().map(|cache| cache.bytes).sum();
    let leading = app
        .overview
        .leases
        .iter()
        .map(|lease| format!(" · {}", lease.state));
    format!(
        "{} due · {} delayed · {busy}/{workers} busy · {} calls, {} errors/s · {}{}",
        number(due),
        number(delayed),
        rate(calls),
        rate(failures),
        bytes(size),
        leading.collect::<String>()
    )
}

/// Returns what is wrong, most urgent first; nothing if all is well.
fn alarm(app: &App, theme: Theme, room: usize) -> Option<Line<'static>> {
    let overview = &app.overview;
    let checks = overview.health.checks.iter().filter(|check| !check.ok);
    let checks = checks.map(|check| match &check.message {
        Some(message) => format!("{}: {message}", check.name),
        None => format!("{} fails", check.name),
    });
    let guards = overview.guards.iter().filter(|guard| guard.tripped);
    let guards = guards.map(|guard| format!("guard of {} tripped", guard.operator));
    let loops = overview
        .hot_loops
        .iter()
        .map(|it| format!("hot loop of {} {}", it.kind.kind, it.key));
    let mut all = checks.chain(guards).chain(loops);
    let first = all.next()?;
    // The first was taken already, so this counts the others.
    let more = match all.count() {
        0 => String::new(),
        more => format!(" (and {more} more, under State)"),
    };
    let first = shortened(&first, room.saturating_sub(width(&more) + 2));
    Some(theme.line(shortened(&format!("! {first}{more}"), room), Tone::Bad))
}

/// Returns the names of the lists of the first page.
fn tabs(app: &App, theme: Theme) -> Line<'static> {
    let mut spans = Vec::new();
    for (nth, name) in ["Controllers", "Caches", "State"].into_iter().enumerate() {
        let style = if nth == app.view().list {
            theme.style(Tone::Strong).add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        spans.push(Span::styled(format!(" {name} "), style));
        spans.push(Span::raw(" "));
    }
    spans.push(Span::raw(filtered(app, &app.content())));
    Line::from(spans)
}

/// Returns which entries are shown, if not all of them.
pub(super) fn filtered(app: &App, content: &Content) -> String {
    let filter = &app.view().filter;
    if filter.is_empty() {
        return String::new();
    }
    format!("{} of {} with “{filter}”", content.len(), content.all)
}

fn path(app: &App, theme: Theme, room: usize) -> Line<'static> {
    let names = Names::of(&app.overview);
    let mut controller = None;
    let parts = app.path().filter_map(|page| match page {
        Page::Home => None,
        Page::Controller(kind) => {
            controller = Some(kind);
            Some(names.name(kind))
        }
        // Its kind stands before it, unless another page led here.
        Page::Key(kind, key) if controller.take() == Some(kind) => Some(key.clone()),
        Page::Key(kind, key) => Some(format!("{} {key}", full_name(kind))),
    });
    let text = parts.collect::<Vec<_>>().join(" › ");
    theme.bar(&format!(" {text}"), Tone::Strong, room)
}

/// Returns the numbers of a controller.
fn controller(controller: &Controller) -> [String; 2] {
    let queue = &controller.queue;
    let workers = match controller.workers {
        Some(workers) => counted(workers, "worker"),
        None => "not running".to_owned(),
    };
    // Most keys have the normal priority, so only the others are worth a number.
    let [high, _, low] = queue.by_priority;
    let priorities = [(high, "high"), (low, "low")]
        .into_iter()
        .filter(|(keys, _)| *keys > 0);
    let priorities: Vec<String> = priorities
        .map(|(keys, name)| format!("{keys} {name}"))
        .collect();
    let priorities = match &priorities.join(", ")[..] {
        "" => String::new(),
        text => format!(" ({text})"),
    };
    let longest = match queue.processing {
        0 => String::new(),
        _ => format!(" for {}", duration(queue.longest)),
    };
    let first = format!(
        "{} · {workers} · {} due{priorities} · {} delayed · {} running{longest}",
        controller.phase, queue.ready, queue.delayed, queue.processing
    );
    let second = format!(
        "waited p50 {} p99 {} · worked p50 {} p99 {} · {} retries",
        quantile(&queue.wait, queue.wait.p50),
        quantile(&queue.wait, queue.wait.p99),
        quantile(&queue.work, queue.work.p50),
        quantile(&queue.work, queue.work.p99),
        queue.retries
    );
    [first, second]
}
