//! Draws figures: line charts as SVG, readable on light and dark backgrounds.

use std::fmt::Write;

/// The size of the picture, at least, and the rectangle of the lines, in pixels.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 610.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 366.0;
/// The distance from the rectangle's edge to the outermost values of the x axis, so that marks are
/// not cut.
const PAD: f64 = 18.0;
/// From the rectangle to the names of the legend, and the most that a letter of one takes.
const LEGEND: f64 = 54.0;
const LETTER: f64 = 7.6;
/// The maximum number of labels of an axis with steps of one, two and five.
const MOST_LABELS: usize = 8;

/// Colors that color-blind readers can distinguish (Okabe and Ito), each for light and dark
/// backgrounds.
const COLORS: [(&str, &str); 10] = [
    ("#a24a00", "#ffa94d"),
    ("#b0307c", "#f08cc8"),
    ("#0060a8", "#6cbcf5"),
    ("#00764f", "#45cfa0"),
    ("#666666", "#a6a6a6"),
    ("#8a6d00", "#e3c54a"),
    ("#5b3fc4", "#b39dfc"),
    ("#00707a", "#56c8d4"),
    ("#8c2d2d", "#f08a80"),
    ("#33475b", "#9fb3c8"),
];

/// One figure.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_axis: Axis,
    pub(crate) y_axis: Axis,
    pub(crate) lines: Vec<Line>,
}

/// A line of a plot, with its values from left to right.
pub(crate) struct Line {
    pub(crate) name: String,
    /// The index of the line's color and mark, the same in all figures.
    pub(crate) kind: usize,
    pub(crate) values: Vec<(f64, f64)>,
    /// Ranges of the values: x, the smallest and the largest y.
    pub(crate) brackets: Vec<(f64, f64, f64)>,
}

/// An axis: its caption with unit, range and labels.
pub(crate) struct Axis {
    caption: String,
    is_logarithmic: bool,
    least: f64,
    most: f64,
    labels: Vec<f64>,
}

impl Axis {
    /// An axis with a label at each of `values`, which must increase.
    pub(crate) fn at(caption: &str, values: &[f64], is_logarithmic: bool) -> Self {
        let (least, most) = (values.first(), values.last());
        Self {
            caption: caption.to_owned(),
            is_logarithmic,
            least: least.copied().unwrap_or(0.0),
            most: most.copied().unwrap_or(1.0),
            labels: values.to_vec(),
        }
    }

    /// From zero to `most`, in even steps.
    pub(crate) fn linear(caption: &str, most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = rounds(most / MOST_LABELS as f64).1;
        let mut labels = vec![0.0];
        while labels[labels.len() - 1] < most {
            labels.push(labels.len() as f64 * step);
        }
        Self::at(caption, &labels, false)
    }

    /// A logarithmic axis around `values`. Values that are not positive are ignored.
    pub(crate) fn logarithmic(caption: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        if most == 0.0 {
            return Self::at(caption, &[1.0, 10.0], true);
        }
        let (least, most) = (rounds(least).0, rounds(most * 1.000_001).1);
        let mut labels = vec![least];
        while labels[labels.len() - 1] < most * 0.999 {
            labels.push(rounds(labels[labels.len() - 1] * 1.5).1);
        }
        if labels.len() > MOST_LABELS {
            labels.retain(|label| rounds(*label * 1.000_001).0.log10().fract().abs() < 1e-6);
        }
        Self { least, most, labels, ..Self::at(caption, &[], true) }
    }

    /// The position of `value` between the ends, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let of = |value: f64| if self.is_logarithmic { value.ln() } else { value };
        let length = of(self.most) - of(self.least);
        if length > 0.0 { (of(value) - of(self.least)) / length } else { 0.5 }
    }

    /// Whether `value` has a position on the axis.
    fn has(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_logarithmic || value > 0.0)
    }
}

/// The nearest numbers of the sequence 1, 2, 5, 10, 20 and so on below and above `value`.
fn rounds(value: f64) -> (f64, f64) {
    let power = 10_f64.powf(value.log10().floor());
    let all = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0].map(|digit| digit * power);
    let near = value * 1e-9;
    let below = all.iter().rfind(|each| **each <= value + near).copied().unwrap_or(all[0]);
    let above = all.iter().find(|each| **each >= value - near).copied().unwrap_or(all[5]);
    (below, above)
}

impl Plot<'_> {
    /// The figure as an SVG file.
    pub(crate) fn svg(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("writing to a string cannot fail");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (title, width) = (escaped(self.title), self.width());
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img">"#
        )?;
        writeln!(out, "<title>{title}</title>")?;
        writeln!(out, "<style>\n{}</style>", style())?;
        writeln!(out, r#"<rect class="paper" width="{width}" height="{HEIGHT}"/>"#)?;
        writeln!(out, r#"<text class="title" x="{LEFT}" y="30">{title}</text>"#)?;
        self.write_axes(out)?;
        for (place, line) in self.lines.iter().enumerate() {
            self.write_line(out, place, line)?;
        }
        writeln!(out, "</svg>")
    }

    /// The width of the picture, so that the longest name in the legend fits.
    fn width(&self) -> f64 {
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        (RIGHT + LEGEND + LETTER * longest as f64 + 6.0).ceil().max(WIDTH)
    }

    fn write_axes(&self, out: &mut String) -> std::fmt::Result {
        for &label in &self.y_axis.labels {
            let y = self.y(label);
            writeln!(out, r#"<path class="grid" d="M{LEFT} {y:.1}H{RIGHT}"/>"#)?;
            let (x, y) = (LEFT - 8.0, y + 4.0);
            writeln!(out, r#"<text class="end" x="{x}" y="{y:.1}">{}</text>"#, number(label))?;
        }
        for &label in &self.x_axis.labels {
            let x = self.x(label);
            let (end, y) = (BOTTOM + 5.0, BOTTOM + 20.0);
            writeln!(out, r#"<path class="axis" d="M{x:.1} {BOTTOM}V{end}"/>"#)?;
            writeln!(out, r#"<text class="middle" x="{x:.1}" y="{y}">{}</text>"#, number(label))?;
        }
        writeln!(out, r#"<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>"#)?;
        let (x, y) = (f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0);
        let caption = escaped(&self.x_axis.caption);
        writeln!(out, r#"<text class="middle" x="{x}" y="{y}">{caption}</text>"#)?;
        let (y, caption) = (f64::midpoint(TOP, BOTTOM), escaped(&self.y_axis.caption));
        writeln!(
            out,
            r#"<text class="middle" transform="translate(18 {y}) rotate(-90)">{caption}</text>"#
        )
    }

    /// The line, its marks, and its name in row `place` of the legend.
    fn write_line(&self, out: &mut String, place: usize, line: &Line) -> std::fmt::Result {
        let kind = line.kind % COLORS.len();
        let points: Vec<(f64, f64)> = line
            .values
            .iter()
            .filter(|(x, y)| self.x_axis.has(*x) && self.y_axis.has(*y))
            .map(|(x, y)| (self.x(*x), self.y(*y)))
            .collect();
        writeln!(out, r#"<g class="line{kind}">"#)?;
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if !path.is_empty() {
            writeln!(out, r#"<path class="line" d="M{}"/>"#, path.join("L"))?;
        }
        for &(x, least, most) in &line.brackets {
            if self.x_axis.has(x) && self.y_axis.has(least) && self.y_axis.has(most) {
                let (x, low, high) = (self.x(x), self.y(least), self.y(most));
                writeln!(out, r#"<path class="bracket" d="M{x:.1} {low:.1}V{high:.1}"/>"#)?;
            }
        }
        for (x, y) in points {
            writeln!(out, "{}", mark(kind, x, y))?;
        }
        let (x, y) = (RIGHT + 20.0, TOP + 14.0 + 24.0 * place as f64);
        writeln!(out, r#"<path class="line" d="M{x} {y}h26"/>{}"#, mark(kind, x + 13.0, y))?;
        writeln!(out, "</g>")?;
        let (x, y) = (RIGHT + LEGEND, y + 4.5);
        writeln!(out, r#"<text x="{x}" y="{y}">{}</text>"#, escaped(&line.name))
    }

    fn x(&self, value: f64) -> f64 {
        let (left, right) = (LEFT + PAD, RIGHT - PAD);
        left + (right - left) * self.x_axis.share(value)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.y_axis.share(value)
    }
}

/// Each line has its own shape, for readers who cannot distinguish colors.
fn mark(kind: usize, x: f64, y: f64) -> String {
    let shape = match kind {
        0 => "m-4.5 -4.5h9v9h-9z",
        1 => "m0 -5.5l5 9h-10z",
        2 => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        3 => "m0 -6l6 6l-6 6l-6 -6z",
        4 => "m-5.5 -1.5h11v3h-11z",
        5 => "m-5 -4.5h10l-5 9z",
        6 => "m-1.5 -5.5h3v11h-3z",
        7 => "m-4.5 -4.5l9 9h-9z",
        8 => "m4.5 -4.5l-9 9h9z",
        _ => "m-5 -1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
    };
    format!(r#"<path class="mark" d="M{x:.1} {y:.1}{shape}"/>"#)
}

fn style() -> String {
    let mut rules = String::from(
        "text{font:14px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:16px}\n\
         .middle{text-anchor:middle}.end{text-anchor:end}.paper{fill:#fff}\n\
         .grid,.axis,.line{fill:none}.grid{stroke:#d8dee4}.axis{stroke:#57606a}.line{stroke-width:2}\n\
         .bracket{fill:none;stroke-width:1.2}\n",
    );
    let colors = |of: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        let rule = |(kind, color): (usize, &(&'static str, &'static str))| {
            let color = of(color);
            format!(
                ".line{kind} .line,.line{kind} .bracket{{stroke:{color}}}.line{kind} .mark{{fill:{color}}}\n"
            )
        };
        COLORS.iter().enumerate().map(rule).collect()
    };
    rules += &colors(|(light, _)| light);
    rules += "@media(prefers-color-scheme:dark){\n\
              text{fill:#e6edf3}.paper{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#9198a1}\n";
    rules += &colors(|(_, dark)| dark);
    rules + "}\n"
}

/// A number as a label, with separated thousands and without trailing zeros.
fn number(value: f64) -> String {
    if value < 1000.0 {
        let text = format!("{value:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    thousands(value)
}

/// A whole number with separated thousands.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        if at > 0 && left % 3 == 0 && digits.as_bytes()[at - 1] != b'-' {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use super::*;

    #[test]
    fn starts_a_linear_axis_at_zero_and_ends_it_above_the_maximum() {
        let axis = Axis::linear("%", 100.0);
        assert_eq!(axis.labels, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let axis = Axis::linear("ms", 7.3);
        assert_eq!((axis.labels[1], axis.most), (1.0, 8.0));
        assert_eq!(axis.share(4.0), 0.5);
    }

    #[test]
    fn puts_all_values_between_round_ends_of_a_logarithmic_axis() {
        let axis = Axis::logarithmic("KB", [131.0, 10_743.5, 0.0]);
        assert_eq!((axis.least, axis.most), (100.0, 20_000.0));
        assert!((axis.share(1414.2) - 0.5).abs() < 1e-3);
        assert_eq!(axis.labels, [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0]);
        let wide = Axis::logarithmic("B", [0.3, 3.0e6]);
        assert_eq!(wide.labels.len(), 7, "{:?}", wide.labels);
        assert!(wide.labels.iter().all(|label| label.log10().fract().abs() < 1e-6));
    }

    #[test]
    fn centers_equal_values() {
        assert_eq!(Axis::at("clients", &[1000.0], true).share(1000.0), 0.5);
        let axis = Axis::logarithmic("ms", [2.0, 2.0]);
        assert!(axis.share(2.0).is_finite());
        assert_eq!(Axis::logarithmic("ms", []).labels, [1.0, 10.0]);
    }

    #[test]
    fn formats_labels_with_separated_thousands_and_no_trailing_zeros() {
        assert_eq!(number(0.05), "0.05");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(16_000.0), "16 000");
        assert_eq!(thousands(1_234_567.0), "1 234 567");
    }

    #[test]
    fn widens_the_picture_for_a_long_name_in_the_legend() {
        let plot = |name: &str| Plot {
            title: "A title",
            x_axis: Axis::at("interval, s", &[10.0, 20.0], false),
            y_axis: Axis::linear("traffic, KB", 5.0),
            lines: vec![Line {
                name: name.to_owned(),
                kind: 0,
                values: Vec::new(),
                brackets: Vec::new(),
            }],
        };
        assert!(plot("Bine").svg().contains(r#"viewBox="0 0 800 430""#));
        assert!(plot("Bine, 150 connections").svg().contains(r#"viewBox="0 0 830 430""#));
    }

    #[test]
    fn draws_axes_lines_and_both_color_schemes() {
        let plot = Plot {
            title: "Pull & push",
            x_axis: Axis::at("interval, s", &[10.0, 20.0], false),
            y_axis: Axis::linear("traffic, KB", 5.0),
            lines: vec![Line {
                name: "pull".into(),
                kind: 0,
                values: vec![(10.0, 1.0), (20.0, 5.0)],
                brackets: vec![(10.0, 0.5, 2.0)],
            }],
        };
        let svg = plot.svg();
        for expected in
            ["Pull &amp; push", "interval, s", "traffic, KB", ">pull<", "color-scheme:dark"]
        {
            assert!(svg.contains(expected), "{expected} in {svg}");
        }
        let marks = svg.matches(r#"class="mark""#).count();
        assert_eq!(marks, 2 + 1, "two values and the legend");
        assert_eq!(svg.matches(r#"class="bracket""#).count(), 1);
    }
}
