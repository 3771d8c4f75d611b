//! The text of `lariat why`.

use lariat_console::api::KeyDetail;

use super::trace::{Explained, Origin};
use crate::console::{Line, Tone, full_name, heading, next_lines, run_lines, running_line};

/// Returns a whole history, oldest run first, and what happens now.
pub(super) fn history(key: &KeyDetail, runs: &[Explained]) -> Vec<Line> {
    let mut lines = vec![Line::new(heading(key), Tone::Strong)];
    // First, since a call that hangs explains why nothing else happens.
    lines.extend(key.in_progress.iter().map(running_line));
    let next = next_lines(key);
    if runs.is_empty() {
        lines.push(Line::new(nothing(key, !next.is_empty()), Tone::Plain));
    }
    for run in runs {
        lines.push(Line::default());
        lines.extend(explained(run));
    }
    if !next.is_empty() {
        lines.push(Line::default());
        lines.extend(next);
    }
    lines
}

/// Returns one run and those that caused it.
pub(super) fn explained(run: &Explained) -> Vec<Line> {
    let mut lines = run_lines(&run.run);
    lines.extend(run.caused_by.iter().flat_map(origin));
    lines
}

fn origin(origin: &Origin) -> Vec<Line> {
    let link = &origin.by.link;
    let name = format!("{} {}", full_name(&link.kind), link.key);
    let number = origin.by.run;
    let line = |text: String| Line::new(text, Tone::Dim);
    match &origin.run {
        Some(run) => {
            // Recursive, so that each cause stands one level deeper than its effect.
            let indented = explained(run).into_iter().map(|line| Line {
                text: format!("    {}", line.text),
                ..line
            });
            let head = line(format!("  caused by a run of {name}:"));
            std::iter::once(head).chain(indented).collect()
        }
        // One run may cause several others; it is printed once.
        None if origin.is_shown_before => vec![line(format!(
            "  caused by run #{number} of {name}, as above"
        ))],
        None => vec![line(format!(
            "  caused by run #{number} of {name}, which is no longer remembered"
        ))],
    }
}

fn nothing(key: &KeyDetail, has_next: bool) -> String {
    let hint = if key.namespace.is_empty() {
        "; an object with a namespace is written namespace/name"
    } else {
        ""
    };
    // The hint is for a key of which nothing is known, which may be misspelled.
    match (&key.resource_version, &key.in_progress, has_next) {
        (None, None, false) => format!("nothing is known of it{hint}"),
        (_, Some(_), _) => "no run of it has ended that is remembered".to_owned(),
        _ => "no run of it is remembered".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    fn text(lines: &[Line]) -> String {
        let lines: Vec<&str> = lines.iter().map(|line| &line.text[..]).collect();
        lines.join("\n")
    }

    fn alone(key: &KeyDetail, run: usize) -> Explained {
        Explained {
            run: key.runs[run].clone(),
            caused_by: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_followed_by_the_run_that_caused_it() {
        let (key, cause) = (samples::key(), samples::cause());
        let mut run = alone(&key, 0);
        let by = run.run.causes[1].by_run.clone().unwrap();
        run.caused_by.push(Origin {
            by: by.clone(),
            run: Some(Box::new(alone(&cause, 1))),
            is_shown_before: false,
        });
        for is_shown_before in [true, false] {
            run.caused_by.push(Origin {
                by: by.clone(),
                run: None,
                is_shown_before,
            });
        }
        let mut quiet = key.clone();
        (quiet.queued, quiet.in_progress, quiet.hot_loop) = (None, None, None);
        quiet.given_up.clear();
        insta::assert_snapshot!(text(&history(&quiet, &[run])));
    }

    #[test]
    fn a_key_without_a_history_says_so() {
        let mut key = samples::key();
        let head = "Deployment.apps shop/web, cached at version 4711\nnow      running in status for 4.2s\n\
             no run of it has ended that is remembered\n\nwaiting ";
        assert!(text(&history(&key, &[])).starts_with(head));
        key.in_progress = None;
        let head = "Deployment.apps shop/web, cached at version 4711\nno run of it is remembered\n\nwaiting ";
        assert!(text(&history(&key, &[])).starts_with(head));
        let deploy = "next     deploy is not called again until the object changes";
        assert!(text(&history(&key, &[])).contains(deploy));
        key.given_up.clear();
        (key.queued, key.in_progress, key.hot_loop) = (None, None, None);
        key.resource_version = None;
        let unknown = "Deployment.apps shop/web, not in the cache\nnothing is known of it";
        assert_eq!(text(&history(&key, &[])), unknown);
        key.namespace.clear();
        assert!(text(&history(&key, &[])).ends_with("namespace/name"));
    }
}
