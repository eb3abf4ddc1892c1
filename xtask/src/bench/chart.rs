//! Bars on a logarithmic scale, as an SVG that needs nothing else.

use std::fmt::Write;

/// One bar: a label, its median and its 95th percentile in microseconds.
pub(super) struct Bar<'a> {
    pub(super) label: &'a str,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) ours: bool,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 200.0;
const ROW: f64 = 30.0;
const TOP: f64 = 56.0;

pub(super) fn svg(title: &str, bars: &[Bar<'_>]) -> String {
    let most = bars.iter().map(|bar| bar.p95).fold(10.0, f64::max);
    let least = bars.iter().map(|bar| bar.p50).fold(most, f64::min);
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    let at = |us: f64| LEFT + (us.log10() - low) / (high - low) * (WIDTH - LEFT - 110.0);
    #[expect(clippy::cast_precision_loss, reason = "there are a dozen bars")]
    let height = TOP + ROW * bars.len() as f64 + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n"
    );
    let mut decade = low;
    while decade <= high {
        let x = at(10_f64.powf(decade));
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" fill=\"#777\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            height - 24.0,
            height - 8.0,
            human(10_f64.powf(decade)),
        );
        decade += 1.0;
    }
    let mut y = TOP;
    for bar in bars {
        let colour = if bar.ours { "#2b7a4b" } else { "#9aa5b1" };
        let (x50, x95) = (at(bar.p50), at(bar.p95));
        let middle = y + ROW / 2.0 - 3.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>\
             <line x1=\"{x50:.1}\" y1=\"{middle}\" x2=\"{x95:.1}\" y2=\"{middle}\" stroke=\"#333\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"#333\">{}</text>",
            LEFT - 10.0,
            y + ROW / 2.0 + 2.0,
            bar.label,
            (x50 - LEFT).max(1.0),
            ROW - 8.0,
            x95 + 6.0,
            y + ROW / 2.0 + 2.0,
            human(bar.p50),
        );
        y += ROW;
    }
    out.push_str("</svg>\n");
    out
}

/// `89 µs`, `1.2 ms`, `3.0 s`.
pub(super) fn human(us: f64) -> String {
    if us < 1_000.0 {
        format!("{us:.0} µs")
    } else if us < 1_000_000.0 {
        format!("{:.1} ms", us / 1_000.0)
    } else {
        format!("{:.1} s", us / 1_000_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_bars_are_longer() {
        let bar = |label, p50| Bar {
            label,
            p50,
            p95: p50 * 2.0,
            ours: true,
        };
        let svg = svg("t", &[bar("a", 100.0), bar("b", 1_000.0)]);
        let widths: Vec<f64> = svg
            .split("width=\"")
            .skip(2)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert!(widths[0] < widths[1], "{widths:?}");
    }

    #[test]
    fn times_read_like_people_say_them() {
        assert_eq!(human(89.4), "89 µs");
        assert_eq!(human(1_234.0), "1.2 ms");
    }
}
