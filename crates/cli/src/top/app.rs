//! What is shown: pages, and what is selected on them.

use std::time::Duration;

use lariat_console::api::{ControllerDetail, KeyDetail, KindRef, Overview};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// All controllers, all caches, or all else.
    Home,
    /// A controller with its keys.
    Controller(KindRef),
    /// A key of a kind, as `namespace/name`.
    Key(KindRef, String),
}

/// What a page shows that is not in the overview.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Detail {
    Controller(Box<ControllerDetail>),
    Key(Box<KeyDetail>),
}

/// News for the screen.
#[derive(Debug)]
pub(super) enum Update {
    /// The console sends overviews, and this is the newest.
    Overview(Box<Overview>),
    /// The console does not answer.
    Lost(String),
    /// The answer to what a page asked for.
    Detail(Page, Result<Detail, String>),
}

/// A page that was opened, and where the user is on it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    pub(super) page: Page,
    /// `None` until it has come.
    pub(super) detail: Option<Result<Detail, String>>,
    /// Which of the lists of the page has the selection.
    pub(super) list: usize,
    /// The selected entry of each list.
    pub(super) selected: [Selected; 3],
    pub(super) filter: String,
    /// The column to sort by, if not by the order of the server.
    pub(super) sort: Option<usize>,
    pub(super) is_reversed: bool,
}

/// What is selected: an entry, or what has taken its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selected {
    at: usize,
    id: Option<String>,
}

/// A connection that is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) error: String,
    /// How long ago it was lost.
    pub(super) ago: Duration,
}

/// The whole state of the screen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct App {
    pub(super) overview: Overview,
    /// The console that is asked.
    pub(super) place: String,
    pub(super) lost: Option<Lost>,
    /// The pages from the first to the one that is shown; never empty.
    views: Vec<View>,
    pub(super) has_help: bool,
    /// Whether the user is typing a filter.
    pub(super) is_typing: bool,
}

impl View {
    fn new(page: Page) -> Self {
        Self {
            page,
            detail: None,
            list: 0,
            selected: Default::default(),
            filter: String::new(),
            sort: None,
            is_reversed: false,
        }
    }

    /// Returns how many lists the page has.
    pub(super) fn lists(&self) -> usize {
        match self.page {
            Page::Home => 3,
            Page::Controller(_) => 2,
            Page::Key(..) => 1,
        }
    }
}

impl Selected {
    /// Returns where it is among entries with these ids.
    pub(super) fn position<'a>(&self, mut ids: impl ExactSizeIterator<Item = &'a str>) -> usize {
        let last = ids.len().saturating_sub(1);
        // The entry may have moved since: the selection follows it, and stays at its place if it is gone.
        let known = self
            .id
            .as_ref()
            .and_then(|id| ids.position(|each| each == id));
        known.unwrap_or(self.at.min(last))
    }

    /// Selects an entry.
    pub(super) fn set(&mut self, at: usize, id: Option<&str>) {
        self.at = at;
        // What has not been moved stays at the top, whatever comes there.
        self.id = id.filter(|_| at > 0).map(str::to_owned);
    }
}

impl App {
    pub(super) fn new(overview: Overview, place: &str) -> Self {
        Self {
            overview,
            place: place.to_owned(),
            lost: None,
            views: vec![View::new(Page::Home)],
            has_help: false,
            is_typing: false,
        }
    }

    /// Returns the page that is shown.
    pub(super) fn view(&self) -> &View {
        self.views.last().expect("there is always a page")
    }

    pub(super) fn view_mut(&mut self) -> &mut View {
        self.views.last_mut().expect("there is always a page")
    }

    /// Returns the pages that lead to the one that is shown, with it.
    pub(super) fn path(&self) -> impl Iterator<Item = &Page> {
        self.views.iter().map(|view| &view.page)
    }

    /// Returns what the page that is shown has to be asked for.
    pub(super) fn wanted(&self) -> Option<&Page> {
        let page = &self.view().page;
        (*page != Page::Home).then_some(page)
    }

    pub(super) fn open(&mut self, page: Page) {
        // A key may lead to a key before it on the path.
        match self.views.iter().position(|view| view.page == page) {
            Some(known) => self.views.truncate(known + 1),
            None => self.views.push(View::new(page)),
        }
    }

    /// Goes back to the page before; the first one stays.
    pub(super) fn back(&mut self) {
        if self.views.len() > 1 {
            self.views.pop();
        }
    }

    /// Takes in news.
    pub(super) fn receive(&mut self, update: Update) {
        match update {
            Update::Overview(overview) => {
                self.overview = *overview;
                self.lost = None;
            }
            Update::Lost(error) => {
                // Each failed attempt reports a loss; the time counts from the first of them.
                let ago = self.lost.as_ref().map_or(Duration::ZERO, |lost| lost.ago);
                self.lost = Some(Lost { error, ago });
            }
            // What is on the screen stays there while the console does not answer.
            Update::Detail(_, Err(_)) if self.lost.is_some() => {}
            Update::Detail(page, detail) => {
                // Not always the page on the screen: the answer may come after the user went on.
                if let Some(view) = self.views.iter_mut().find(|view| view.page == page) {
                    view.detail = Some(detail);
                }
            }
        }
    }

    /// Lets time pass.
    pub(super) fn tick(&mut self, elapsed: Duration) {
        if let Some(lost) = &mut self.lost {
            lost.ago += elapsed;
        }
    }
}
