//! Orders divided among processes.

use std::collections::{BTreeMap, BTreeSet};

use lariat_integration::{example, run};

use super::assert_refused;

/// What a step of the story printed.
#[derive(Default)]
struct StorySection<'a> {
    title: &'a str,
    /// Which orders each replica handled, in the order of the lines.
    handled: Vec<(&'a str, &'a str)>,
    /// The last share of each replica: of how many it is one, and which orders it has.
    shares: BTreeMap<&'a str, (&'a str, Vec<&'a str>)>,
    /// How each replica ended.
    ends: Vec<(&'a str, &'a str)>,
    /// How many orders moved, and how long that took.
    moved: Option<(usize, &'a str)>,
    /// How many orders each replica has, and how many of them are new to it.
    table: BTreeMap<&'a str, (usize, usize)>,
}

fn steps(stdout: &str) -> Vec<StorySection<'_>> {
    let mut steps = vec![StorySection::default()];
    for line in stdout.lines() {
        if let Some(title) = line.strip_prefix("▸ ") {
            steps.push(StorySection {
                title,
                ..StorySection::default()
            });
        }
        let step = steps.last_mut().expect("there is one");
        let number = |text: &str| text.parse::<usize>().ok();
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["replica", name, "handles", order] => step.handled.push((name, order)),
            [
                "replica",
                name,
                "is",
                "one",
                "of",
                members,
                "and",
                "has:",
                ref orders @ ..,
            ] => {
                step.shares.insert(name, (members, orders.to_vec()));
            }
            ["replica", name, "ended:", "signal:", "9", ..] => step.ends.push((name, "killed")),
            ["replica", name, "ended:", "exit", "status:", "0"] => {
                step.ends.push((name, "stopped"));
            }
            [count, "orders", "moved", "within", time] => {
                step.moved = Some((number(count).expect("a number"), time));
            }
            [name, orders, new] => {
                if let (Some(orders), Some(new)) = (number(orders), number(new)) {
                    step.table.insert(name, (orders, new));
                }
            }
            _ => {}
        }
    }
    steps
}

impl<'a> StorySection<'a> {
    /// Returns which orders move, each once, and where to.
    fn moves(&self) -> BTreeMap<&'a str, &'a str> {
        let moves: BTreeMap<_, _> = self
            .handled
            .iter()
            .map(|(to, order)| (*order, *to))
            .collect();
        assert_eq!(moves.len(), self.handled.len(), "{:?}", self.handled);
        let (count, time) = self.moved.expect("it says how many and how long");
        assert_eq!(count, moves.len());
        assert!(time.ends_with('s'), "{time}");
        moves
    }

    /// Returns who has each order at the end of the step: each is in the share of one of the members.
    fn holders(&self, members: usize) -> BTreeMap<&'a str, &'a str> {
        let mut holders = BTreeMap::new();
        for (name, (count, orders)) in &self.shares {
            assert_eq!(*count, format!("{members},"), "{name}");
            for order in orders {
                let other = holders.insert(*order, *name);
                assert_eq!(other, None, "{name} has {order} as well");
            }
        }
        assert_eq!((holders.len(), self.shares.len()), (ORDERS, members));
        holders
    }

    /// Checks that the table says who has how many, and how many are new.
    fn assert_table(&self, holders: &BTreeMap<&str, &str>, moves: &BTreeMap<&str, &str>) {
        let count = |of: &BTreeMap<&str, &str>, name| of.values().filter(|by| **by == name).count();
        for (name, row) in &self.table {
            assert_eq!(*row, (count(holders, *name), count(moves, *name)), "{name}");
        }
        let all: usize = self.table.values().map(|(orders, _)| orders).sum();
        assert_eq!(all, ORDERS);
    }
}

/// So many that each replica has some: none of 24 is one run in sixteen million.
const ORDERS: usize = 24;

#[tokio::test]
async fn what_moves_is_what_the_one_that_left_had_or_the_part_of_the_new_one() {
    let orders = ORDERS.to_string();
    let (code, stdout, stderr) =
        run(example("sharded", &["--lease-s", "3", "--orders", &orders])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let steps = steps(&stdout);
    let [_, start, killed, stopped, new] = &steps[..] else {
        panic!("four steps");
    };
    // An order goes on to a replica that joins, and never back.
    let unique: BTreeSet<_> = start.handled.iter().collect();
    assert_eq!(unique.len(), start.handled.len());
    let mut holders = start.holders(3);
    for (step, members, how) in [(killed, 2, "killed"), (stopped, 1, "stopped")] {
        let (gone, _) = step.title.split_once(" is ").expect("one is");
        let moves = step.moves();
        let had = holders.iter().filter(|(_, by)| **by == gone);
        let had: BTreeSet<_> = had.map(|(order, _)| *order).collect();
        assert_eq!(had, moves.keys().copied().collect(), "{}", step.title);
        holders.extend(&moves);
        assert_eq!(holders, step.holders(members), "{}", step.title);
        step.assert_table(&holders, &moves);
        assert_eq!(step.ends, [(gone, how)]);
    }
    let moves = new.moves();
    assert!(moves.values().all(|to| *to == "white"), "{moves:?}");
    assert!(!moves.is_empty() && moves.len() < ORDERS, "{moves:?}");
    holders.extend(&moves);
    assert_eq!(holders, new.holders(2));
    new.assert_table(&holders, &moves);
    assert!(stdout.ends_with("stopped\n"));
}

#[tokio::test]
async fn an_invalid_lease_is_refused() {
    let reason = "invalid configuration of the lease orders: the lease duration 0ns is not between a second and 2^31 seconds";
    assert_refused("sharded", &["--lease-s", "0"], reason).await;
}

#[tokio::test]
async fn no_orders_are_refused() {
    let reason = "--orders is not 1 to 999";
    assert_refused("sharded", &["--orders", "0"], reason).await;
}
