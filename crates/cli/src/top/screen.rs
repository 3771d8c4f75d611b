//! The terminal in raw mode, which is restored however this ends.

use std::io::{self, Stdout};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::app::App;
use super::draw::draw;
use super::lists::Theme;

/// A terminal in raw mode with the alternate screen.
///
/// Dropping it restores the terminal. So does a panic, before its message is printed.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    theme: Theme,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be changed.
    pub(super) fn enter(theme: Theme) -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal, theme }),
            Err(error) => {
                // It may have changed half of it.
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws the state.
    ///
    /// # Errors
    ///
    /// The terminal has gone.
    pub(super) fn draw(&mut self, app: &App) -> io::Result<()> {
        let theme = self.theme;
        self.terminal.draw(|frame| draw(app, theme, frame))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal has gone, there is nothing to restore.
        let _ = ratatui::try_restore();
    }
}
