//! Watches: a cursor into the history of a resource.

mod client;
mod condense;
mod event;
mod planned_break;
mod watcher;

use super::fields::Filter;
use super::list;
use crate::fault::Action;
use crate::status::ApiError;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;

pub(crate) use event::WatchEvent;
pub(crate) use watcher::Watcher;

pub(super) async fn watch(call: &Call) -> Result<Answer, ApiError> {
    let query = call.query.list()?;
    let filter = Filter::new(&call.resource, call.namespace(), &query)?;
    let version = query.version.as_deref().map(parse_version).transpose()?;
    // Made before anything is read: from here on the watch counts as open, which keeps its history from ageing, and an
    // ending of all watches ends it too.
    let mut watcher = Watcher::new(call, &query, filter);
    // Without a version, or at any with initial events, a watch begins with the present state.
    let begins_with_state = query
        .initial_events
        .unwrap_or(matches!(version, None | Some(0)));
    // From here on 0 means what no version means: with the state both read the present, without it both begin now.
    let version = version.filter(|version| *version > 0);
    if begins_with_state {
        match list::wait_for(call, version).await {
            Ok(()) => {
                let marks_end = query.bookmarks && call.fault() != Some(&Action::OmitInitialEnd);
                watcher.begin_with_state(call, marks_end);
                watcher.convert_state().await;
            }
            // As Cacher.Watch: once the version is parsed, errors are events of type ERROR and not responses.
            Err(error) => watcher.fail(&error),
        }
    } else {
        let version = version.unwrap_or_else(|| call.server.store.revision());
        match call.fault() {
            Some(Action::Expire) => watcher.expire(version),
            Some(Action::Gone) => return Err(watcher.expired(version)),
            Some(Action::SkipStates) => watcher.begin_condensed(version),
            Some(Action::ReplayEvents(events)) => watcher.begin_before(version, *events),
            _ => watcher.begin_at(version),
        }
    }
    Ok(Answer::Watch(Box::new(watcher)))
}

fn parse_version(text: &str) -> Result<u64, ApiError> {
    // With 500, unlike a list: Cacher.Watch returns the error of its parser, which is no API status.
    list::read_version(text).map_err(ApiError::internal)
}
