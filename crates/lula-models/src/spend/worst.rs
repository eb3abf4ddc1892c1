//! What a call can cost at most, and what it did cost.

use lula_protocol::{BudgetAmounts, BudgetDimension};

use super::ModelPrice;
use crate::normal::TokenUsage;

/// Tokens a provider may add around a prompt: its template, its own words about tools.
const TEMPLATE: u64 = 1024;

/// The most tokens that a picture counts as, at the provider that counts most.
const PICTURE: u64 = 50_000;

/// The most tokens a request can be read as: every tokenizer in use makes at most one token of a
/// byte, and pictures count by their size, not by their bytes. A smaller context is a smaller bound,
/// because a longer prompt is refused.
pub fn input_bound<'a>(
    body: &[u8],
    pictures: impl Iterator<Item = &'a str>,
    context: Option<u64>,
) -> u64 {
    let mut bytes = (body.len() as u64).saturating_add(TEMPLATE);
    for picture in pictures {
        bytes = bytes.saturating_sub(picture.len() as u64);
        bytes = bytes.saturating_add(PICTURE);
    }
    context.map_or(bytes, |context| bytes.min(context))
}

/// The worst case of one call, to be reserved before it is made. Time is not part of it: calls
/// run beside each other, and what is left of a run's time is a deadline to each of them.
pub fn worst_case(price: &ModelPrice, input: u64, output: u64) -> BudgetAmounts {
    let worst = BudgetAmounts::none()
        .with(BudgetDimension::MicroUsd, price.at_most(input, output))
        .with(BudgetDimension::InputTokens, input)
        .with(BudgetDimension::OutputTokens, output)
        .with(BudgetDimension::ModelCalls, 1);
    counted(price, worst)
}

/// With the call counted among those without a price, where it is one.
fn counted(price: &ModelPrice, amounts: BudgetAmounts) -> BudgetAmounts {
    if price.known {
        amounts
    } else {
        amounts.with(BudgetDimension::UnpricedCalls, 1)
    }
}

/// What a call used. Where the server did not say, the worst case is what it used.
pub fn actual(
    price: &ModelPrice,
    usage: Option<&TokenUsage>,
    worst: &BudgetAmounts,
) -> BudgetAmounts {
    let Some(usage) = usage else {
        return worst.clone();
    };
    let used = BudgetAmounts::none()
        .with(BudgetDimension::MicroUsd, price.of(usage))
        .with(BudgetDimension::InputTokens, usage.input)
        .with(BudgetDimension::OutputTokens, usage.output)
        .with(BudgetDimension::ModelCalls, 1);
    counted(price, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_count_is_charged_the_worst() {
        let price = ModelPrice::ceiling(10.0).unwrap();
        let worst = worst_case(&price, 1000, 100);
        let spent = actual(&price, None, &worst);
        assert_eq!(spent.get(BudgetDimension::MicroUsd), Some(11_000));
    }

    #[test]
    fn a_prompt_is_bounded_by_its_bytes_and_by_the_context() {
        let none = std::iter::empty;
        assert_eq!(input_bound(&[0; 5000], none(), None), 6024);
        assert_eq!(input_bound(&[0; 5000], none(), Some(4096)), 4096);
    }

    #[test]
    fn a_picture_is_bounded_by_what_it_counts_as() {
        let picture = "A".repeat(900_000);
        let bound = input_bound(&vec![0; 905_000], std::iter::once(picture.as_str()), None);
        assert_eq!(bound, 56_024);
    }
}
