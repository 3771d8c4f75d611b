//! The text of kubeconfigs, as kubectl and Lariat read it.
//!
//! `kubectl config view --raw` prints a kubeconfig as it has understood it. Lariat must read the same configuration of
//! each context from the text and from this output. One file has many contexts, each with a cluster and a user of its
//! own. If kubectl refuses a file, its halves are compared, and Lariat must refuse a context that kubectl refuses
//! alone. `connect` compares the requests that a configuration leads to.

mod entries;
mod text;

use crate::seeds::with_seeds;
use anyhow::{Result, ensure};
use entries::Case;
use fastrand::Rng;
use lariat_client::fuzzing::KubeconfigText;
use lariat_integration::Kubectl;

/// How many contexts there are in a file.
const CONTEXTS: usize = 200;

#[tokio::test]
async fn kubeconfig_texts_of_a_random_seed_are_read_as_by_kubectl() -> Result<()> {
    with_seeds(compare).await
}

async fn compare(seed: u64) -> Result<()> {
    let rng = &mut Rng::with_seed(seed);
    let cases: Vec<Case> = (0..CONTEXTS).map(|number| Case::new(rng, number)).collect();
    let kubectl = Kubectl::new(Some(""), "default")?;
    let (mut usable, mut compared, mut differences) = (0, 0, Vec::new());
    // The parts that are to be compared: all, and halves of those that kubectl refuses or that differ.
    let mut parts = vec![&cases[..]];
    while let Some(part) = parts.pop() {
        compared += 1;
        let text = text::kubeconfig(seed, part);
        match compare_part(&kubectl, &text, part).await? {
            Ok(used) => usable += used,
            Err(Some(difference)) if part.len() == 1 => {
                let text = String::from_utf8_lossy(&text);
                differences.push(format!("{text}{difference}"));
            }
            Err(_) if part.len() > 1 => {
                parts.extend(<[_; 2]>::from(part.split_at(part.len() / 2)));
            }
            Err(_) => {}
        }
    }
    println!("{usable} of {CONTEXTS} contexts can be used; kubectl ran {compared} times");
    ensure!(
        differences.is_empty(),
        "{} contexts differ:\n{}",
        differences.len(),
        differences[..differences.len().min(9)].join("\n---\n")
    );
    ensure!(usable * 4 > CONTEXTS, "only {usable} contexts can be used");
    Ok(())
}

/// Compares the contexts of a text; returns how many of them can be used.
///
/// It is an error if a context differs, or kubectl refuses the text; then with a difference if Lariat uses a context.
async fn compare_part(
    kubectl: &Kubectl,
    text: &[u8],
    cases: &[Case],
) -> Result<Result<usize, Option<String>>> {
    std::fs::write(kubectl.folder().join("kubeconfig"), text)?;
    let view = kubectl.ended(&["config", "view", "--raw", "-o", "json"], "");
    let view = view.await?;
    let read = KubeconfigText::parse(text);
    let read = |case: &Case| read.as_ref().map_err(Clone::clone)?.context(&case.name);
    if view.code != Some(0) {
        let used = cases.iter().find_map(|case| read(case).ok());
        let difference = used.map(|config| format!("kubectl: {}Lariat: {config}", view.stderr));
        return Ok(Err(difference));
    }
    let understood = KubeconfigText::parse(view.stdout.as_bytes()).map_err(anyhow::Error::msg)?;
    let mut usable = 0;
    for case in cases {
        let (expected, found) = (understood.context(&case.name), read(case));
        usable += usize::from(found.is_ok());
        if found.as_ref().ok() != expected.as_ref().ok() {
            let difference = format!("kubectl: {expected:?}\nLariat: {found:?}");
            return Ok(Err(Some(difference)));
        }
    }
    Ok(Ok(usable))
}
