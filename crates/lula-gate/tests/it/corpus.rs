//! How often detectors are right, on texts written for it.

use std::collections::BTreeMap;

use lula_gate::findings::{FindingLabel, scan};

const CORPUS: &str = include_str!("../corpus/findings.txt");

/// The least a detector must reach, in percent.
const PRECISION: usize = 95;
const RECALL: usize = 90;

struct Sample {
    line: usize,
    label: Option<FindingLabel>,
    text: String,
}

fn samples() -> Vec<Sample> {
    let lines = CORPUS.lines().enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            let (name, text) = line.split_once(" | ").unwrap();
            let label = (name != "none").then(|| FindingLabel::from_name(name).unwrap());
            Sample {
                line: index + 1,
                label,
                text: unescaped(text),
            }
        })
        .collect()
}

fn unescaped(text: &str) -> String {
    let text = text.replace('¦', "").replace("\\n", "\n");
    let mut pieces = text.split("\\u{");
    let mut whole = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_once('}').unwrap();
        whole.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        whole.push_str(rest);
    }
    whole
}

#[derive(Default)]
struct Score {
    right: usize,
    wrong: usize,
    missed: usize,
}

#[test]
fn detectors_find_what_they_should_and_little_else() {
    let samples = samples();
    assert!(samples.len() >= 200, "{} samples", samples.len());
    let mut scores: BTreeMap<FindingLabel, Score> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for sample in &samples {
        let found = scan(&sample.text);
        for label in FindingLabel::ALL {
            let score = scores.entry(label).or_default();
            match (found.has(label), sample.label == Some(label)) {
                (true, true) => score.right += 1,
                (true, false) => {
                    score.wrong += 1;
                    mistakes.push(format!("line {}: wrongly {}", sample.line, label.name()));
                }
                (false, true) => {
                    score.missed += 1;
                    mistakes.push(format!("line {}: missed {}", sample.line, label.name()));
                }
                (false, false) => {}
            }
        }
    }
    println!("{} samples", samples.len());
    let mut too_low = false;
    for (label, score) in &scores {
        let precision = 100 * score.right / (score.right + score.wrong).max(1);
        let recall = 100 * score.right / (score.right + score.missed).max(1);
        println!(
            "{:17} precision {precision:3} %  recall {recall:3} %  ({} right, {} wrong, {} missed)",
            label.name(),
            score.right,
            score.wrong,
            score.missed
        );
        too_low |= precision < PRECISION || recall < RECALL;
    }
    assert!(!too_low, "{}", mistakes.join("\n"));
}
