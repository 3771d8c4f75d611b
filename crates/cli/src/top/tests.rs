//! Screens after keys, at the sizes of terminals.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::app::{App, Detail, Page, Update};
use super::draw::{draw, plain};
use super::keys::Next;
use super::lists::Theme;
use super::screen::Screen;
use crate::console::samples;
use crate::testing::tmux::Tmux;

/// A terminal of a size, and a program in it.
struct Seen {
    app: App,
    terminal: Terminal<TestBackend>,
}

impl Seen {
    fn new(width: u16, height: u16) -> Self {
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let app = App::new(samples::overview(), "http://127.0.0.1:9090");
        Self { app, terminal }
    }

    fn press(&mut self, code: KeyCode) -> Next {
        self.app.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    /// Presses the keys of letters.
    fn letters(&mut self, letters: &str) {
        for letter in letters.chars() {
            assert_eq!(self.press(KeyCode::Char(letter)), Next::Continue);
        }
    }

    /// Answers what the page asks for.
    fn answer(&mut self) {
        let page = self.app.wanted().cloned().unwrap();
        let detail = match &page {
            Page::Controller(_) => Detail::Controller(Box::new(samples::detail())),
            Page::Key(_, key) if key == "shop/web-1" => Detail::Key(Box::new(samples::cause())),
            _ => Detail::Key(Box::new(samples::key())),
        };
        self.app.receive(Update::Detail(page, Ok(detail)));
    }

    fn draw(&mut self) {
        let (app, theme) = (&self.app, Theme { has_colours: true });
        self.terminal.draw(|frame| draw(app, theme, frame)).unwrap();
    }

    /// Returns the screen as text.
    fn text(&mut self) -> String {
        self.draw();
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width).map(|row| {
            let row: String = row.iter().map(|cell| cell.symbol()).collect();
            format!("{}\n", row.trim_end())
        });
        rows.collect()
    }

    /// Returns the text of the row that is selected: the last one in reverse over its whole width.
    fn selected(&mut self) -> String {
        self.draw();
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let mut rows = buffer.content.chunks(width);
        let is_selected = |row: &&[ratatui::buffer::Cell]| {
            row.iter()
                .all(|cell| cell.modifier.contains(Modifier::REVERSED))
        };
        let row = rows.rfind(is_selected).unwrap_or_default();
        let row: String = row.iter().map(|cell| cell.symbol()).collect();
        row.trim_end().to_owned()
    }

    /// Returns whether what is selected opens a page.
    fn leads_somewhere(&self) -> bool {
        let (content, view) = (self.app.content(), self.app.view());
        let at = view.selected[view.list].position(content.ids());
        content.target(at).is_some()
    }

    /// Compares the screen with the one in a file; `UPDATE_SCREENS=1` writes it instead.
    #[track_caller]
    fn check(&mut self, name: &str) {
        let text = self.text();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/screens");
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_SCREENS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap();
        assert_eq!(text, expected, "{name}:\n{text}");
    }

    #[track_caller]
    fn has(&mut self, expected: &str) {
        let text = self.text();
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
}

#[test]
fn controllers_fill_a_terminal_of_80_columns() {
    Seen::new(80, 24).check("controllers_80x24");
}

#[test]
fn the_important_columns_fit_a_small_terminal() {
    Seen::new(40, 10).check("controllers_40x10");
}

#[test]
fn enter_opens_a_controller_and_then_a_key_and_esc_goes_back() {
    let mut seen = Seen::new(80, 24);
    seen.press(KeyCode::Enter);
    seen.has("loading …");
    seen.answer();
    seen.check("controller_80x24");
    // From the handlers, Enter leads to the keys of the handler.
    seen.press(KeyCode::Down);
    seen.press(KeyCode::Enter);
    seen.has("Keys: 4 of 6 with “status”");
    assert!(seen.selected().starts_with("shop/web"));
    seen.press(KeyCode::Enter);
    assert!(matches!(seen.app.wanted(), Some(Page::Key(_, key)) if key == "shop/web"));
    seen.answer();
    seen.check("key_80x24");
    for expected in ["Deployment.apps", "CONTROLLER"] {
        seen.press(KeyCode::Esc);
        seen.has(expected);
        // The filter of the controller's page goes first.
        seen.press(KeyCode::Esc);
    }
    assert_eq!(seen.app.wanted(), None);
    // The first page stays.
    seen.press(KeyCode::Esc);
    seen.has("CONTROLLER");
}

#[test]
fn a_key_leads_to_the_key_that_caused_its_run() {
    let mut seen = Seen::new(80, 24);
    let kind = samples::key().kind;
    seen.app
        .open(Page::Key(kind.clone(), "shop/web".to_owned()));
    seen.answer();
    for _ in 0..20 {
        if seen.leads_somewhere() {
            break;
        }
        seen.press(KeyCode::Down);
    }
    assert!(seen.selected().contains("⏎"));
    seen.press(KeyCode::Enter);
    seen.answer();
    seen.has("Deployment.apps shop/web › Pod shop/web-1");
    // Back to a key on the path: no page is twice on it.
    seen.app.open(Page::Key(kind, "shop/web".to_owned()));
    assert_eq!(seen.app.path().count(), 2);
}

#[test]
fn a_small_terminal_shows_a_controller_and_a_key_too() {
    let mut seen = Seen::new(40, 10);
    seen.press(KeyCode::Enter);
    seen.answer();
    seen.press(KeyCode::Tab);
    seen.press(KeyCode::Down);
    seen.check("controller_40x10");
    seen.press(KeyCode::Enter);
    seen.answer();
    seen.press(KeyCode::End);
    seen.check("key_40x10");
}

#[test]
fn a_lost_connection_is_seen_until_news_come() {
    for (width, height) in [(80, 24), (40, 10)] {
        let mut seen = Seen::new(width, height);
        seen.has(" live\n");
        seen.app.receive(Update::Lost("it has ended".to_owned()));
        seen.app.tick(Duration::from_secs(12));
        // Another attempt that fails does not begin it again.
        seen.app.receive(Update::Lost("nothing listens".to_owned()));
        seen.has("connection lost 12s ago");
        seen.has(" LOST\n");
        // What was known stays.
        seen.has("Deployment.apps");
        seen.app
            .receive(Update::Overview(Box::new(samples::overview())));
        assert!(!seen.text().contains("connection lost"));
    }
}

#[test]
fn details_stay_while_the_connection_is_lost() {
    let mut seen = Seen::new(80, 24);
    seen.press(KeyCode::Enter);
    seen.answer();
    let page = seen.app.wanted().cloned().unwrap();
    let failed = |seen: &mut Seen| {
        seen.app.receive(Update::Detail(
            page.clone(),
            Err("404 Not Found".to_owned()),
        ))
    };
    seen.app.receive(Update::Lost("it has ended".to_owned()));
    failed(&mut seen);
    seen.has("HANDLER");
    seen.app
        .receive(Update::Overview(Box::new(samples::overview())));
    failed(&mut seen);
    seen.has("404 Not Found");
}

#[test]
fn a_filter_is_typed_and_cleared() {
    let mut seen = Seen::new(80, 24);
    seen.letters("/");
    // Letters that are commands elsewhere are letters here.
    seen.letters("sq");
    seen.has("/sq▏");
    seen.press(KeyCode::Backspace);
    seen.letters("hop");
    seen.press(KeyCode::Enter);
    seen.has("1 of 3 with “shop”");
    assert!(seen.selected().starts_with("Shop.demo.dev"));
    seen.press(KeyCode::Esc);
    seen.has("Deployment.apps");
    seen.letters("/zzz");
    seen.has("nothing has the filter's text");
    seen.press(KeyCode::Enter);
    // There is nothing to open.
    seen.press(KeyCode::Enter);
    assert_eq!(seen.app.wanted(), None);
}

#[test]
fn lists_are_sorted_by_one_column_after_the_other() {
    let mut seen = Seen::new(80, 24);
    let order = |seen: &mut Seen| {
        let text = seen.text();
        let places = ["Deployment.apps", "Pod", "Shop.demo"].map(|name| text.find(name).unwrap());
        places.map(|place| places.iter().filter(|other| **other < place).count())
    };
    seen.letters("s");
    seen.has("CONTROLLER▼");
    assert_eq!(order(&mut seen), [0, 1, 2]);
    seen.letters("r");
    seen.has("CONTROLLER▲");
    assert_eq!(order(&mut seen), [2, 1, 0]);
    // The longest queue first.
    seen.letters("s");
    seen.has("▼DUE");
    assert_eq!(order(&mut seen), [0, 2, 1]);
    // Behind the last column it is as the server has it.
    seen.letters("sssssss");
    assert!(!seen.text().contains('▼'));
}

#[test]
fn what_is_selected_stays_so_when_others_move() {
    let mut seen = Seen::new(80, 24);
    seen.letters("jj");
    assert!(seen.selected().starts_with("Shop.demo.dev"));
    let mut overview = samples::overview();
    overview.controllers.swap(0, 2);
    seen.app
        .receive(Update::Overview(Box::new(overview.clone())));
    assert!(seen.selected().starts_with("Shop.demo.dev"));
    // What is gone leaves its place to the next.
    overview.controllers.remove(0);
    seen.app.receive(Update::Overview(Box::new(overview)));
    assert!(seen.selected().starts_with("Deployment.apps"));
}

#[test]
fn the_other_lists_are_a_tab_away() {
    let mut seen = Seen::new(80, 24);
    seen.app
        .receive(Update::Overview(Box::new(samples::trouble())));
    seen.has("! handlers: deploy has been called for Deployment sho… (and 2 more, under State)");
    seen.press(KeyCode::Tab);
    seen.has("listing, 400 of 20000");
    seen.press(KeyCode::Tab);
    seen.has("tripped");
    // A hot loop leads to its key.
    seen.press(KeyCode::End);
    seen.press(KeyCode::Enter);
    assert!(matches!(seen.app.wanted(), Some(Page::Key(_, key)) if key == "shop/web"));
    seen.press(KeyCode::Esc);
    seen.press(KeyCode::BackTab);
    seen.has("listing, 400 of 20000");
}

#[test]
fn help_fits_the_smallest_terminal_and_any_key_closes_it() {
    for (width, height) in [(80, 24), (40, 10)] {
        let mut seen = Seen::new(width, height);
        seen.letters("?");
        let text = seen.text();
        assert!(text.contains("Ctrl-C") && !text.contains('…'), "{text}");
        seen.press(KeyCode::Esc);
        seen.has("CONTROLLER");
    }
}

#[test]
fn q_and_control_c_end_it_everywhere() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for before in ["", "?", "/a"] {
        let mut seen = Seen::new(80, 24);
        seen.letters(before);
        assert_eq!(seen.app.key(control_c), Next::Quit, "{before}");
    }
    for before in ["", "?"] {
        let mut seen = Seen::new(80, 24);
        seen.letters(before);
        assert_eq!(seen.press(KeyCode::Char('q')), Next::Quit, "{before}");
    }
    // A key that is let go does nothing.
    let mut seen = Seen::new(80, 24);
    let released = KeyEvent::new_with_kind(
        KeyCode::Char('q'),
        KeyModifiers::NONE,
        KeyEventKind::Release,
    );
    assert_eq!(seen.app.key(released), Next::Continue);
}

#[test]
fn what_fails_is_red_unless_colours_are_unwanted() {
    let mut seen = Seen::new(80, 24);
    seen.press(KeyCode::Down);
    seen.draw();
    let has_red = |seen: &Seen| {
        seen.terminal
            .backend()
            .buffer()
            .content
            .iter()
            .any(|cell| cell.fg == Color::Red)
    };
    assert!(has_red(&seen));
    let theme = Theme { has_colours: false };
    let app = &seen.app;
    seen.terminal.draw(|frame| draw(app, theme, frame)).unwrap();
    assert!(!has_red(&seen));
}

#[test]
fn every_size_can_be_drawn() {
    for page in 0..3 {
        let mut app = App::new(samples::trouble(), "http://127.0.0.1:9090");
        let kind = samples::key().kind;
        let (page, detail) = match page {
            0 => (Page::Home, None),
            1 => (
                Page::Controller(kind),
                Some(Detail::Controller(Box::new(samples::detail()))),
            ),
            _ => (
                Page::Key(kind, "shop/web".to_owned()),
                Some(Detail::Key(Box::new(samples::key()))),
            ),
        };
        app.open(page.clone());
        if let Some(detail) = detail {
            app.receive(Update::Detail(page, Ok(detail)));
        }
        app.receive(Update::Lost("it has ended".to_owned()));
        for (width, height) in [(1, 1), (2, 3), (10, 4), (17, 60), (300, 2), (300, 100)] {
            let mut seen = Seen {
                app: app.clone(),
                terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
            };
            seen.draw();
            seen.press(KeyCode::End);
            seen.draw();
        }
    }
}

#[test]
fn one_frame_as_text_has_all_controllers_and_no_selection() {
    let app = App::new(samples::overview(), "http://127.0.0.1:9090");
    let text = plain(&app, 100);
    assert!(
        text.starts_with("shop-operator 1.4.2 · ready · up 4h02m · http://127.0.0.1:9090"),
        "{text}"
    );
    assert!(text.ends_with('\n') && !text.contains('\u{1b}'), "{text}");
    for expected in [
        "Deployment.apps",
        "Pod",
        "Shop.demo.dev",
        "14 due · 9 delayed · 3/15 busy",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

/// The variable that makes a process of a test panic.
const PANIC: &str = "LARIAT_TEST_PANIC";

#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    if std::env::var_os(PANIC).is_some() {
        let mut screen = Screen::enter(Theme { has_colours: true }).unwrap();
        screen
            .draw(&App::new(samples::overview(), "http://127.0.0.1:9090"))
            .unwrap();
        panic!("this is the panic of the test");
    }
    // This test again, in a terminal of its own.
    let program = std::env::current_exe().unwrap();
    let name = "top::tests::a_panic_leaves_the_terminal_as_it_was";
    let tmux = Tmux::start(80, 24);
    tmux.type_line(&format!(
        "{PANIC}=1 {} --exact {name} --nocapture; echo ended",
        program.display()
    ));
    tmux.has("this is the panic of the test");
    tmux.wait("the shell", |screen| {
        screen.lines().any(|line| line == "ended")
    });
    tmux.check_restored();
}
