//! `lariat top` from its first question to its end.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::sync::mpsc;

use super::app::App;
use super::draw::plain;
use super::lists::Theme;
use super::live::{News, follow};
use super::options::Options;
use super::screen::Screen;
use super::session::session;
use crate::console::{Console, Output, Printer, has_colours, run_until_asked};

/// How wide a frame is that goes to no terminal.
const WIDTH: usize = 120;

/// Shows a program live.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    run_until_asked(show(options))
}

async fn show(options: &Options) -> Result<ExitCode> {
    let is_screen = !options.once && options.output == Output::Text;
    ensure!(
        !is_screen || (io::stdout().is_terminal() && io::stdin().is_terminal()),
        "there is no terminal to draw in; --once prints one frame, and --output json a line a second"
    );
    let console = Arc::new(Console::connect(&options.source).await?);
    // An error is best read before the screen changes.
    let answer = console.overview().await?;
    let mut printer = Printer::new();
    match options.output {
        Output::Json if options.once => printer.json(&answer.json)?,
        Output::Json => return lines(&console, printer).await,
        Output::Text => {
            let mut app = App::new(answer.value, console.place());
            if options.once {
                printer.text(&plain(&app, frame_width()))?;
                return Ok(ExitCode::SUCCESS);
            }
            let theme = Theme {
                has_colours: has_colours(),
            };
            let mut screen = Screen::enter(theme).context("the terminal cannot be used")?;
            session(&console, &mut app, &mut screen).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn frame_width() -> usize {
    let size = crossterm::terminal::size().ok();
    let size = size.filter(|(width, _)| *width > 0 && io::stdout().is_terminal());
    size.map_or(WIDTH, |(width, _)| width.into())
}

/// Prints overviews as they come, one a line.
async fn lines(console: &Console, mut printer: Printer) -> Result<ExitCode> {
    // One place: overviews are left unread while standard output is slow, instead of piling up here.
    let (sender, mut news) = mpsc::channel(1);
    let printing = async move {
        let mut is_lost = false;
        while let Some(news) = news.recv().await {
            match news {
                News::Overview(answer) => {
                    is_lost = false;
                    printer.json_line(&answer.json)?;
                }
                News::Lost(error) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        eprintln!("connection lost: {error}; trying again");
                    }
                }
            }
            if !printer.is_read() {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    };
    // With the reader of the lines the receiver goes, and the other ends.
    let ((), printed) = tokio::join!(follow(console, sender), printing);
    printed
}
