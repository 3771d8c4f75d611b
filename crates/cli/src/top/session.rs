//! A session: keys and news change the state, and the state is drawn.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use crossterm::event::{Event, EventStream};
use futures::{FutureExt, StreamExt};
use lariat_console::api::{ControllerDetail, KeyDetail};
use lariat_core::ObjectKey;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::app::{App, Detail, Page, Update};
use super::keys::Next;
use super::live::{self, News};
use super::screen::Screen;
use crate::console::{AskError, Console, controller_path, key_path};

/// How often the screen is drawn without news, and pages are asked for again.
const PERIOD: Duration = Duration::from_secs(1);

/// How many updates wait for the screen at most.
const WAITING: usize = 4;

/// The page that is asked for, if it was.
struct Fetch {
    tasks: JoinSet<Update>,
    page: Option<Page>,
}

/// Shows the state until the user ends it.
///
/// # Errors
///
/// The terminal has gone.
///
/// # Cancel safety
///
/// Dropping the future ends the session and all its requests.
pub(super) async fn session(
    console: &Arc<Console>,
    app: &mut App,
    screen: &mut Screen,
) -> Result<()> {
    let (sender, mut updates) = mpsc::channel(WAITING);
    // Sets end their tasks when they are dropped, so every way out of this function ends all requests.
    let mut live = JoinSet::new();
    let stream = Arc::clone(console);
    live.spawn(async move { live::follow(&stream, sender).await });
    let mut fetch = Fetch {
        tasks: JoinSet::new(),
        page: None,
    };
    let mut events = EventStream::new();
    let mut ticks = interval(PERIOD);
    // A process that was stopped with Ctrl-Z would otherwise draw once for each second that it missed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        screen.draw(app)?;
        let mut is_due = false;
        tokio::select! {
            event = events.next() => {
                if on_event(app, &event.context("the terminal has gone")??) == Next::Quit {
                    return Ok(());
                }
            }
            news = updates.recv() => app.receive(update(news.context("the updates have ended")?)),
            // The branch is off while no answer is awaited, because an empty set returns `None`.
            Some(fetched) = fetch.tasks.join_next() => app.receive(fetched?),
            _ = ticks.tick() => is_due = true,
            // A task that panics has written over the screen.
            Some(ended) = live.join_next() => ended?,
        }
        // Keys that were typed meanwhile need one drawing.
        while let Some(Some(event)) = events.next().now_or_never() {
            if on_event(app, &event?) == Next::Quit {
                return Ok(());
            }
        }
        let now = Instant::now();
        app.tick(now - last);
        last = now;
        fetch.ask(console, app, is_due)?;
    }
}

fn update(news: News) -> Update {
    match news {
        News::Overview(answer) => Update::Overview(Box::new(answer.value)),
        News::Lost(error) => Update::Lost(error.to_string()),
    }
}

fn on_event(app: &mut App, event: &Event) -> Next {
    match event {
        Event::Key(key) => app.key(*key),
        // The next drawing asks for the size.
        _ => Next::Continue,
    }
}

impl Fetch {
    /// Asks for the page that is shown: when it is opened, and again when it is due and the last answer has come.
    fn ask(
        &mut self,
        console: &Arc<Console>,
        app: &mut App,
        is_due: bool,
    ) -> Result<(), JoinError> {
        if self.page.as_ref() != app.wanted() {
            self.tasks.abort_all();
            // What was aborted is of no interest, and what had come before is for a page that is kept.
            while let Some(ended) = self.tasks.try_join_next() {
                match ended {
                    Ok(update) => app.receive(update),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => return Err(error),
                }
            }
            self.tasks.detach_all();
            self.page = app.wanted().cloned();
        } else if !is_due || !self.tasks.is_empty() {
            return Ok(());
        }
        let Some(page) = self.page.clone() else {
            return Ok(());
        };
        let console = Arc::clone(console);
        self.tasks.spawn(async move {
            let detail = fetch(&console, &page).await;
            Update::Detail(page, detail.map_err(|error| error.to_string()))
        });
        Ok(())
    }
}

async fn fetch(console: &Console, page: &Page) -> Result<Detail, AskError> {
    match page {
        Page::Key(kind, key) => {
            let key = match key.split_once('/') {
                Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
                None => ObjectKey::cluster(key),
            };
            let answer = console.get::<KeyDetail>(&key_path(kind, &key)).await?;
            Ok(Detail::Key(Box::new(answer.value)))
        }
        Page::Controller(kind) => {
            let answer = console
                .get::<ControllerDetail>(&controller_path(kind))
                .await?;
            Ok(Detail::Controller(Box::new(answer.value)))
        }
        Page::Home => unreachable!("the first page has all it needs"),
    }
}
