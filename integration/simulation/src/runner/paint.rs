//! Colour for those who read a failure on a terminal.

use std::io::{self, IsTerminal};

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";

/// Prints lines; with colour on a terminal, unless `NO_COLOR` is set.
pub(super) fn paint(text: &str) {
    let has_colour = io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    for line in text.lines() {
        match colour_of(line).filter(|_| has_colour) {
            Some(colour) => println!("{colour}{line}\x1b[0m"),
            None => println!("{line}"),
        }
    }
}

fn colour_of(line: &str) -> Option<&'static str> {
    if line.contains(" VIOLATION ") || line.starts_with("seed ") {
        return Some(RED);
    }
    if line.contains(" plan: ") || line.contains(" all faults end") {
        return Some(YELLOW);
    }
    line.contains(" world ").then_some(DIM)
}

#[cfg(test)]
mod tests {
    use super::{RED, YELLOW, colour_of};

    #[test]
    fn what_failed_and_what_was_done_stand_out() {
        assert_eq!(
            colour_of("   1.000s operator-0 VIOLATION no panic: oh"),
            Some(RED)
        );
        assert_eq!(
            colour_of("   1.000s driver     plan: fault: Away"),
            Some(YELLOW)
        );
        assert_eq!(colour_of("   1.000s operator-0 #1 → 200"), None);
    }
}
