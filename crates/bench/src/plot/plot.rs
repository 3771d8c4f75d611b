//! The plot of a sync.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::panel;
use super::panel::{Line, Panel};
use crate::report::Row;

/// Who is drawn: the case, the subject, what it is called, its colour, and whether it is dashed.
///
/// The colours can be distinguished from each other, and from a white and a black background.
const DRAWN: [(&str, &str, &str, &str, bool); 5] = [
    ("typed", "lariat", "Lariat, typed", "#2f81f7", false),
    ("metadata", "lariat", "Lariat, metadata", "#2f81f7", true),
    ("typed", "kube-rs", "kube-rs, typed", "#e0662b", false),
    ("metadata", "kube-rs", "kube-rs, metadata", "#e0662b", true),
    (
        "typed",
        "kube-rs-shared",
        "kube-rs, shared stream (unstable)",
        "#b07cf0",
        false,
    ),
];

/// The number of pods in panels about handlers, and of handlers in the others.
const PODS: usize = 1000;

const HANDLERS: usize = 1;

const WIDTH: usize = 880;

const HEIGHT: usize = 660;

/// Prints an SVG of what files of JSON lines hold.
pub(crate) fn print(files: &[String]) -> Result<()> {
    let mut rows: Vec<Row> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| file.clone())?;
        for line in text.lines() {
            rows.push(serde_json::from_str(line).with_context(|| file.clone())?);
        }
    }
    rows.retain(|row| row.bench == "sync");
    ensure!(!rows.is_empty(), "no rows of `run sync --json`");
    println!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="{grey}">"#,
        grey = panel::GREY
    );
    let memory = |row: &Row| row.peak_rss_mb;
    let cpu = |row: &Row| Some(row.cpu_s);
    let by_pods = |row: &Row| (row.handlers == Some(HANDLERS)).then_some(row.n);
    let by_handlers = |row: &Row| row.handlers.filter(|_| row.n == PODS);
    let panels = [
        (
            "Peak memory, MB, one handler",
            "pods",
            lines(&rows, by_pods, memory),
        ),
        ("CPU, s, one handler", "pods", lines(&rows, by_pods, cpu)),
        (
            "Peak memory, MB, 1,000 pods",
            "handlers",
            lines(&rows, by_handlers, memory),
        ),
        (
            "CPU, s, 1,000 pods",
            "handlers",
            lines(&rows, by_handlers, cpu),
        ),
    ];
    for (number, (title, axis, lines)) in panels.into_iter().enumerate() {
        let (left, top) = (number % 2 * (WIDTH / 2), number / 2 * 300);
        print!("{}", Panel { title, axis, lines }.draw(left, top));
    }
    print!("{}", legend());
    println!("</svg>");
    Ok(())
}

/// Returns a line through the medians for each subject that is drawn.
fn lines(
    rows: &[Row],
    x: impl Fn(&Row) -> Option<usize>,
    y: impl Fn(&Row) -> Option<f64>,
) -> Vec<Line> {
    let line = |&(case, subject, _, colour, dashed): &(&str, &str, _, &'static str, bool)| {
        let mut points: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let drawn = rows
            .iter()
            .filter(|row| row.case == case && row.subject == subject);
        for (x, y) in drawn.filter_map(|row| Some((x(row)?, y(row)?))) {
            points.entry(x).or_default().push(y);
        }
        let points = points.into_iter().map(|(x, mut all)| {
            all.sort_by(f64::total_cmp);
            // The median of the runs, as in the tables.
            (x as f64, all[all.len() / 2])
        });
        Line {
            points: points.collect(),
            colour,
            dashed,
        }
    };
    let lines = DRAWN.iter().map(line);
    // A point alone shows no course.
    lines.filter(|line| line.points.len() > 1).collect()
}

fn legend() -> String {
    let entry = |(number, &(_, _, name, colour, dashed)): (usize, &(_, _, &str, &str, bool))| {
        let (x, y) = (60 + number % 3 * 260, 620 + number / 3 * 22);
        let (end, text, dash) = (x + 30, x + 38, panel::dash(dashed));
        format!(
            "<path d=\"M{x} {y}H{end}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>\
             <text x=\"{text}\" y=\"{}\">{name}</text>\n",
            y + 4
        )
    };
    DRAWN.iter().enumerate().map(entry).collect()
}
