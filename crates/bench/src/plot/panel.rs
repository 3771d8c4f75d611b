//! One panel: lines on two logarithmic axes.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Readable on white and on black.
pub(super) const GREY: &str = "#8b949e";

/// The size of the plotted area, and where it begins in its panel.
const WIDTH: f64 = 350.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 36.0;

pub(super) struct Line {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) colour: &'static str,
    pub(super) dashed: bool,
}

pub(super) struct Panel {
    pub(super) title: &'static str,
    /// What is counted to the right.
    pub(super) axis: &'static str,
    pub(super) lines: Vec<Line>,
}

/// Where values lie between the ends of an axis.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns 0 for the low end and 1 for the high one.
    fn share(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }
}

impl Panel {
    pub(super) fn draw(&self, left: usize, top: usize) -> String {
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        if points().next().is_none() {
            return String::new();
        }
        let (x, y) = (
            scale(points().map(|point| point.0)),
            scale(points().map(|point| point.1)),
        );
        // Powers of ten around what is drawn.
        let y = Scale {
            low: 10f64.powf(y.low.log10().floor()),
            high: 10f64.powf(y.high.log10().ceil()),
        };
        let mut svg = format!("<g transform=\"translate({left},{top})\">\n");
        let middle = LEFT + WIDTH / 2.0;
        text(&mut svg, LEFT, 20.0, "start", self.title);
        text(&mut svg, middle, TOP + HEIGHT + 36.0, "middle", self.axis);
        self.axes(&mut svg, &x, &y);
        for line in &self.lines {
            line.draw(&mut svg, &x, &y);
        }
        svg + "</g>\n"
    }

    fn axes(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let points = self.lines.iter().flat_map(|line| line.points.iter());
        // The horizontal axis is labelled where something was measured, instead of at powers of ten.
        let counts: BTreeSet<usize> = points.map(|point| point.0 as usize).collect();
        for count in counts {
            let at = LEFT + WIDTH * x.share(count as f64);
            text(svg, at, TOP + HEIGHT + 18.0, "middle", &thousands(count));
        }
        let mut value = y.low;
        // The tolerance is for what the multiplications round.
        while value <= y.high * 1.01 {
            let at = TOP + HEIGHT * (1.0 - y.share(value));
            let label = format!("{}", (value * 1000.0).round() / 1000.0);
            text(svg, LEFT - 8.0, at + 4.0, "end", &label);
            let end = LEFT + WIDTH;
            draw(
                svg,
                &format!("M{LEFT} {at:.1}H{end}"),
                "stroke-width=\"0.5\" stroke-opacity=\"0.6\"",
                GREY,
            );
            value *= 10.0;
        }
    }
}

impl Line {
    fn draw(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let place = |&(count, value): &(f64, f64)| {
            let right = LEFT + WIDTH * x.share(count);
            (right, TOP + HEIGHT * (1.0 - y.share(value)))
        };
        let places: Vec<(f64, f64)> = self.points.iter().map(place).collect();
        let mut path = String::new();
        for (number, (right, down)) in places.iter().enumerate() {
            let step = if number == 0 { 'M' } else { 'L' };
            path += &format!("{step}{right:.1} {down:.1}");
            let colour = self.colour;
            *svg += &format!(
                "<circle cx=\"{right:.1}\" cy=\"{down:.1}\" r=\"3\" fill=\"{colour}\"/>\n"
            );
        }
        draw(
            svg,
            &path,
            &format!("stroke-width=\"2\"{}", dash(self.dashed)),
            self.colour,
        );
    }
}

pub(super) fn dash(dashed: bool) -> &'static str {
    if dashed {
        " stroke-dasharray=\"5 4\""
    } else {
        ""
    }
}

fn scale(values: impl Iterator<Item = f64>) -> Scale {
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    // A single value is in the middle.
    if low == high {
        (low, high) = (low / 2.0, high * 2.0);
    }
    Scale { low, high }
}

fn draw(svg: &mut String, path: &str, style: &str, colour: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" {style}/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn thousands(count: usize) -> String {
    match count {
        0..1000 => count.to_string(),
        _ => format!("{},{:03}", count / 1000, count % 1000),
    }
}
