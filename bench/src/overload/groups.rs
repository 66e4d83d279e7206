//! The points of one server under one load, one for each seed: medians with their extremes.

use super::figures::short;
use super::plan::{Shape, Variant};
use super::raw::Record;
use crate::figures::Spread;

/// The records of one workload, server and load.
pub(super) struct Group<'r> {
    pub(super) shape: Shape,
    pub(super) variant: Variant,
    /// By seed.
    pub(super) records: Vec<&'r Record>,
}

/// The groups of the records of one workload, by load and variant.
pub(super) fn groups<'r>(records: &[&'r Record]) -> Vec<Group<'r>> {
    let mut sorted = records.to_vec();
    sorted.sort_by_key(|record| record.point);
    let chunks = sorted.chunk_by(|one, other| {
        let [one, other] = [one.point, other.point];
        (one.workload, one.shape, one.variant) == (other.workload, other.shape, other.variant)
    });
    let group = |chunk: &[&'r Record]| {
        let point = chunk.first()?.point;
        Some(Group { shape: point.shape, variant: point.variant, records: chunk.to_vec() })
    };
    chunks.filter_map(group).collect()
}

impl Group<'_> {
    /// The median of a figure over the seeds, with its extremes; `None` if no seed has it.
    pub(super) fn spread(&self, figure: impl Fn(&Record) -> f64) -> Option<Spread> {
        let samples = self.records.iter().map(|record| figure(record));
        Spread::of(samples.filter(|sample| sample.is_finite()))
    }

    /// The median; not a number if no seed has the figure.
    pub(super) fn median(&self, figure: impl Fn(&Record) -> f64) -> f64 {
        self.spread(figure).map_or(f64::NAN, |spread| spread.median)
    }

    /// The median, with its extremes in brackets if the seeds differ.
    pub(super) fn cell(&self, figure: impl Fn(&Record) -> f64) -> String {
        let Some(Spread { median, least, most }) = self.spread(figure) else {
            return "-".to_owned();
        };
        let [median, least, most] = [median, least, most].map(short);
        if least == most { median } else { format!("{median} ({least}-{most})") }
    }

    /// The load in percent of saturation; `None` for a surge.
    pub(super) const fn load(&self) -> Option<u64> {
        match self.shape {
            Shape::Steady(percent) => Some(percent),
            Shape::Surge => None,
        }
    }

    /// The load relative to saturation.
    pub(super) fn load_text(&self) -> String {
        self.load().map_or_else(|| "surge".to_owned(), load_text)
    }
}

/// A load in percent, relative to saturation.
pub(super) fn load_text(percent: u64) -> String {
    format!("{:.2}", percent as f64 / 100.0)
}

#[cfg(test)]
pub(super) mod tests {
    //! Groups of records with given figures.

    use super::*;
    use crate::overload::plan::{Point, Workload};
    use crate::overload::raw::tests::with_figures;

    /// A record of the auction.
    pub(in crate::overload) fn sample(
        variant: Variant,
        load: u64,
        seed: u64,
        figures: &[(&str, f64)],
    ) -> Record {
        let (workload, shape) = (Workload::Dynamic, Shape::Steady(load));
        with_figures(Point { workload, shape, variant, seed }, figures)
    }

    #[test]
    fn joins_the_seeds_of_a_load() {
        let of = |load, seed, count| sample(Variant::Pool, load, seed, &[("completed", count)]);
        let records = [of(200, 1, 30.0), of(50, 1, 1.0), of(200, 3, 10.0), of(200, 2, 20.0)];
        let groups = groups(&records.iter().collect::<Vec<_>>());
        let cells: Vec<(String, String)> = groups
            .iter()
            .map(|group| (group.load_text(), group.cell(|record| record.figure("completed"))))
            .collect();
        let expected = [("0.50", "1.00"), ("2.00", "20.0 (10.0-30.0)")];
        assert_eq!(cells, expected.map(|(load, cell)| (load.to_owned(), cell.to_owned())));
        assert_eq!(groups[0].cell(|_| f64::NAN), "-");
    }
}
