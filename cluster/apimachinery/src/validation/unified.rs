//! Differences of texts, line by line.
//!
//! Source: `github.com/pmezard/go-difflib`.

use std::collections::HashMap;
use std::ops::Range;

/// The number of equal lines around a difference.
const CONTEXT: usize = 3;

/// Texts of at least so many lines have popular lines, by which none is found.
const LONG: usize = 200;

/// Returns the difference of two texts in the unified format, without a header.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    for group in groups(&steps(&old, &new)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let (of_old, of_new) = (
            shown(first.old.start..last.old.end),
            shown(first.new.start..last.new.end),
        );
        text.push_str(&format!("@@ -{of_old} +{of_new} @@\n"));
        let mut write = |sign: char, lines: &[&str]| {
            for line in lines {
                text.push(sign);
                text.push_str(line);
                text.push('\n');
            }
        };
        for step in group {
            if step.equal {
                write(' ', &old[step.old]);
            } else {
                write('-', &old[step.old]);
                write('+', &new[step.new]);
            }
        }
    }
    text
}

// `formatRangeUnified`.
fn shown(range: Range<usize>) -> String {
    match range.len() {
        1 => (range.start + 1).to_string(),
        // Lines begin with one, and an empty range with the line before it.
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    }
}

/// Lines of the old text, and those of the new one that take their place.
#[derive(Debug, Clone)]
struct Step {
    equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// Lines that are the same in both texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    old: usize,
    new: usize,
    size: usize,
}

/// Returns how the new text is made of the old one.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut i, mut j) = (0, 0);
    let end = Block {
        old: old.len(),
        new: new.len(),
        size: 0,
    };
    for block in blocks(old, new).into_iter().chain([end]) {
        if i < block.old || j < block.new {
            steps.push(Step {
                equal: false,
                old: i..block.old,
                new: j..block.new,
            });
        }
        (i, j) = (block.old + block.size, block.new + block.size);
        if block.size > 0 {
            steps.push(Step {
                equal: true,
                old: block.old..i,
                new: block.new..j,
            });
        }
    }
    steps
}

/// Groups steps that are near to each other, with some lines around them.
// `GetGroupedOpCodes`.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let (is_first, is_last) = (at == 0, at + 1 == steps.len());
        if !step.equal {
            group.push(step.clone());
            continue;
        }
        let head = step.old.len().min(CONTEXT);
        let front = Step {
            equal: true,
            old: step.old.start..step.old.start + head,
            new: step.new.start..step.new.start + head,
        };
        let tail = Step {
            equal: true,
            old: step.old.end - head..step.old.end,
            new: step.new.end - head..step.new.end,
        };
        match (is_first, is_last) {
            (true, true) => {}
            (true, false) => group.push(tail),
            (false, true) => group.push(front),
            // A long run of equal lines ends a group, and its last lines begin the next.
            (false, false) if step.old.len() > 2 * CONTEXT => {
                group.push(front);
                groups.push(std::mem::replace(&mut group, vec![tail]));
            }
            (false, false) => group.push(step.clone()),
        }
    }
    if group.iter().any(|step| !step.equal) {
        groups.push(group);
    }
    groups
}

/// Returns the blocks that are the same in both texts, in order and without neighbours.
// `GetMatchingBlocks`, by a list of work instead of a recursion.
fn blocks(old: &[&str], new: &[&str]) -> Vec<Block> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    // `autoJunk`: lines that are frequent in a long text are no anchors.
    if new.len() >= LONG {
        places.retain(|_, at| at.len() <= new.len() / 100 + 1);
    }
    let mut found = Vec::new();
    let mut work = vec![(0..old.len(), 0..new.len())];
    while let Some((in_old, in_new)) = work.pop() {
        let block = longest(old, new, &places, (in_old.clone(), in_new.clone()));
        if block.size == 0 {
            continue;
        }
        found.push(block);
        let (i, j) = (block.old + block.size, block.new + block.size);
        for part in [
            (in_old.start..block.old, in_new.start..block.new),
            (i..in_old.end, j..in_new.end),
        ] {
            if !part.0.is_empty() && !part.1.is_empty() {
                work.push(part);
            }
        }
    }
    found.sort_unstable();
    // Blocks that touch in both texts become one.
    let mut blocks: Vec<Block> = Vec::new();
    for block in found {
        match blocks.last_mut() {
            Some(last)
                if (last.old + last.size, last.new + last.size) == (block.old, block.new) =>
            {
                last.size += block.size;
            }
            _ => blocks.push(block),
        }
    }
    blocks
}

/// Finds the longest run of equal lines, the first of several.
// `findLongestMatch`, without junk.
fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (in_old, in_new): (Range<usize>, Range<usize>),
) -> Block {
    let mut best = Block {
        old: in_old.start,
        new: in_new.start,
        size: 0,
    };
    // How long the run is that ends with the line before, by its place in the new text.
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for i in in_old.clone() {
        let mut next = HashMap::new();
        let all = places.get(old[i]).into_iter().flatten();
        for &j in all.filter(|j| in_new.contains(j)) {
            let before = j.checked_sub(1).and_then(|j| runs.get(&j));
            let size = before.copied().unwrap_or(0) + 1;
            next.insert(j, size);
            if size > best.size {
                best = Block {
                    old: i + 1 - size,
                    new: j + 1 - size,
                    size,
                };
            }
        }
        runs = next;
    }
    // Popular lines are no reason for a run, but may be at its ends.
    while best.old > in_old.start
        && best.new > in_new.start
        && old[best.old - 1] == new[best.new - 1]
    {
        best.old -= 1;
        best.new -= 1;
        best.size += 1;
    }
    while best.old + best.size < in_old.end
        && best.new + best.size < in_new.end
        && old[best.old + best.size] == new[best.new + best.size]
    {
        best.size += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_with_the_lines_around_them() {
        assert_eq!(unified("a\nb", "a\nb"), "");
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(unified("a\nb", "a"), "@@ -1,2 +1 @@\n a\n-b\n");
        let lines = |from: u32, to: u32| (from..=to).map(|n| format!("{n}\n")).collect::<String>();
        let old = lines(1, 20);
        let new = old
            .replace("5\n", "five\n")
            .replacen("16\n", "16\n16.5\n", 1);
        let expected = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
            @@ -12,8 +12,9 @@\n 12\n 13\n 14\n-15\n+1five\n 16\n+16.5\n 17\n 18\n 19\n";
        assert_eq!(unified(old.trim_end(), new.trim_end()), expected);
    }

    #[test]
    fn popular_lines_of_long_texts_do_not_begin_a_run() {
        let old: Vec<String> = (0..300).map(|n| format!("{}", n % 2 * n)).collect();
        let mut new = old.clone();
        new.insert(150, "new".to_owned());
        let found = unified(&old.join("\n"), &new.join("\n"));
        assert_eq!(
            found,
            "@@ -148,6 +148,7 @@\n 147\n 0\n 149\n+new\n 0\n 151\n 0\n"
        );
    }
}
