//! Overviews as they come, over one connection after the other.

use std::time::Duration;

use lariat_console::api::Overview;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::console::{Answer, AskError, Console};

/// The first delay before another attempt; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);

/// The longest delay before another attempt.
const LONGEST: Duration = Duration::from_secs(5);

/// What comes from a console.
#[derive(Debug)]
pub(super) enum News {
    /// The newest overview.
    Overview(Box<Answer<Overview>>),
    /// The console does not answer; it is asked again.
    Lost(AskError),
}

/// Sends overviews while there is a receiver, and the outages of the console.
///
/// A stream that ends is opened again. That is not yet a loss: a console ends streams now and then, to ask again what
/// their user may do.
///
/// # Cancel safety
///
/// Dropping the future ends the connection.
pub(super) async fn follow(console: &Console, news: mpsc::Sender<News>) {
    let mut delay = FIRST;
    loop {
        let (had_any, ended) = connection(console, &news).await;
        let Err(error) = ended else {
            return;
        };
        // A connection that delivered something was good, so the next attempt comes soon.
        if had_any {
            delay = FIRST;
        } else if news.send(News::Lost(error)).await.is_err() {
            return;
        }
        sleep(delay).await;
        if !had_any {
            delay = (delay * 2).min(LONGEST);
        }
    }
}

/// Sends the overviews of one connection.
///
/// Returns whether there were any, and how the connection ended.
///
/// It ends without an error if nothing takes them.
async fn connection(console: &Console, news: &mpsc::Sender<News>) -> (bool, Result<(), AskError>) {
    let mut had_any = false;
    let mut stream = match console.watch().await {
        Ok(stream) => stream,
        Err(error) => return (had_any, Err(error)),
    };
    loop {
        let overview = match stream.next().await {
            Ok(overview) => overview,
            Err(error) => return (had_any, Err(error)),
        };
        had_any = true;
        if news.send(News::Overview(Box::new(overview))).await.is_err() {
            return (had_any, Ok(()));
        }
    }
}
