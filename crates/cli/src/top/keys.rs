//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::app::{App, Page};

/// How many entries a page key moves by.
const PAGE: isize = 10;

/// What comes after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Quit,
}

impl App {
    /// Takes in a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        // Windows and some terminals report the release of a key as well.
        if key.kind == KeyEventKind::Release {
            return Next::Continue;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        // In raw mode Ctrl-C is a key and no signal, and must work whatever is open.
        if is_control && key.code == KeyCode::Char('c') {
            return Next::Quit;
        }
        if self.has_help {
            // Any key closes it, and q ends all the same.
            self.has_help = false;
            return quit_if(key.code == KeyCode::Char('q'));
        }
        if self.is_typing {
            self.type_filter(key.code, is_control);
            return Next::Continue;
        }
        if key.code == KeyCode::Char('q') {
            return Next::Quit;
        }
        if !self.move_by(key.code) {
            self.command(key.code);
        }
        Next::Continue
    }

    fn type_filter(&mut self, code: KeyCode, is_control: bool) {
        match code {
            // So letters that are commands elsewhere, such as `q`, can be part of a filter.
            KeyCode::Char(letter) if !is_control => self.view_mut().filter.push(letter),
            KeyCode::Backspace => {
                // Behind the first letter it leaves.
                self.is_typing = self.view_mut().filter.pop().is_some();
            }
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.view_mut().filter.clear();
                self.is_typing = false;
            }
            code => {
                self.move_by(code);
            }
        }
    }

    /// Moves the selection; returns whether the key does that.
    fn move_by(&mut self, code: KeyCode) -> bool {
        let by = match code {
            KeyCode::Up => -1,
            KeyCode::Char('k') if !self.is_typing => -1,
            KeyCode::Down => 1,
            KeyCode::Char('j') if !self.is_typing => 1,
            KeyCode::PageUp => -PAGE,
            KeyCode::PageDown => PAGE,
            KeyCode::Home => isize::MIN,
            KeyCode::Char('g') if !self.is_typing => isize::MIN,
            KeyCode::End => isize::MAX,
            KeyCode::Char('G') if !self.is_typing => isize::MAX,
            _ => return false,
        };
        let content = self.content();
        let view = self.view_mut();
        let selected = &mut view.selected[view.list];
        let last = content.len().saturating_sub(1);
        let at = selected
            .position(content.ids())
            .saturating_add_signed(by)
            .min(last);
        selected.set(at, content.ids().nth(at));
        true
    }

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.enter(),
            KeyCode::Esc if !self.view().filter.is_empty() => self.view_mut().filter.clear(),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left | KeyCode::Char('h') => self.back(),
            KeyCode::Tab => self.turn(1),
            // One back is the same as all but one forward.
            KeyCode::BackTab => self.turn(self.view().lists() - 1),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?') => self.has_help = true,
            KeyCode::Char('s') => {
                let columns = self.content().sortable();
                let view = self.view_mut();
                // Behind the last column it is the order of the server again.
                let next = view.sort.map_or(0, |column| column + 1);
                view.sort = (next < columns).then_some(next);
                view.is_reversed = false;
            }
            KeyCode::Char('r') => {
                let view = self.view_mut();
                view.is_reversed = !view.is_reversed;
            }
            _ => {}
        }
    }

    /// Gives the selection to another list of the page.
    fn turn(&mut self, by: usize) {
        let view = self.view_mut();
        view.list = (view.list + by) % view.lists();
        // The column is one of the list before, and may be missing here.
        (view.sort, view.is_reversed) = (None, false);
    }

    /// Opens what is selected.
    fn enter(&mut self) {
        let content = self.content();
        let view = self.view_mut();
        let at = view.selected[view.list].position(content.ids());
        let is_handler = matches!(view.page, Page::Controller(_)) && view.list == 0;
        if is_handler {
            // The keys of the handler are in the list below.
            view.filter = content.ids().nth(at).unwrap_or_default().to_owned();
            view.list = 1;
            view.selected[1] = Default::default();
        } else if let Some(page) = content.target(at) {
            self.open(page);
        }
    }
}

fn quit_if(quits: bool) -> Next {
    if quits { Next::Quit } else { Next::Continue }
}
