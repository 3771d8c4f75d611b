//! The text of `lariat status`.

use lariat_console::api::Overview;

use crate::console::tables::{self, Names};
use crate::console::{Grid, Line, Tone, duration};

/// The width of a line; output may go to a file, so no terminal decides it.
const WIDTH: usize = 120;

/// Returns the state of a program, which answers at a place.
pub(super) fn lines(overview: &Overview, place: &str) -> Vec<Line> {
    let program = &overview.program;
    let (state, tone) = if overview.health.ready {
        ("ready", Tone::Good)
    } else {
        ("not ready", Tone::Bad)
    };
    let version = program.version.iter().map(|version| format!(" {version}"));
    let name: String = std::iter::once(program.name.clone())
        .chain(version)
        .collect();
    let head = format!(
        "{name}: {state}, up {}, at {place}",
        duration(program.uptime)
    );
    let mut lines = vec![Line::new(head, tone)];
    // From the whole overview, so that a kind has one name in all tables.
    let names = Names::of(overview);
    let controllers: Vec<_> = overview.controllers.iter().collect();
    // Caches of controllers are in their rows: here is what has none, or is not well.
    let is_own = |kind| controllers.iter().any(|controller| controller.kind == kind);
    let is_well =
        |it: &&lariat_console::api::Cache| it.synced && !it.stale && it.last_error.is_none();
    let caches: Vec<_> = overview
        .caches
        .iter()
        .filter(|cache| !is_well(cache) || !is_own(cache.kind.clone()))
        .collect();
    table(&mut lines, &tables::facts(overview, names));
    table(&mut lines, &tables::controllers(&controllers, names));
    table(&mut lines, &tables::caches(&caches, names));
    lines
}

/// Adds a table behind an empty line, unless it has no rows.
fn table(lines: &mut Vec<Line>, grid: &Grid) {
    if grid.rows.is_empty() {
        return;
    }
    let fit = grid.fit(WIDTH);
    lines.push(Line::default());
    lines.push(Line::new(grid.header(&fit, None), Tone::Dim));
    let rows = grid.rows.iter();
    lines.extend(rows.map(|row| Line::new(grid.line(&row.cells, &fit), row.tone)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    fn text(overview: &Overview) -> String {
        let lines = lines(overview, "http://a:1");
        lines
            .iter()
            .map(|line| format!("{}\n", line.text))
            .collect()
    }

    #[test]
    fn it_is_one_screen_with_what_is_wrong_first() {
        let overview = samples::trouble();
        let text = text(&overview);
        assert!(
            text.starts_with("shop-operator 1.4.2: not ready, up 4h02m, at http://a:1\n\nWHAT "),
            "{text}"
        );
        assert!(text.lines().count() <= 24, "{text}");
        for expected in [
            "tripped",
            "hot loop",
            "Shop.demo.dev",
            "listing, 400 of 20000",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(lines(&overview, "")[0].tone, Tone::Bad);
    }

    #[test]
    fn a_cache_that_is_well_is_in_the_row_of_its_controller() {
        let mut overview = samples::overview();
        assert!(text(&overview).contains("\nCACHE "));
        overview
            .caches
            .iter_mut()
            .for_each(|cache| cache.synced = true);
        assert!(!text(&overview).contains("\nCACHE "));
        overview.controllers.clear();
        assert!(text(&overview).contains("\nCACHE "));
        assert!(!text(&overview).contains("\nCONTROLLER "));
    }
}
