//! Compares engines with two kinds of buffers. `fresh` is the case of an engine's users: a new
//! string per page, with the capacity that the engine estimates. `reused` appends to a cleared
//! buffer with enough capacity.

use std::hint::black_box;

use ::sailfish::runtime::Buffer;
use bine_bench_templates::{
    askama, bine, compare, hypertext, league, markup, maud, rows, sailfish, write,
};
use criterion::{Criterion, criterion_group, criterion_main};

/// Times a page with every engine, as one group.
macro_rules! time {
    ($group:literal, $criterion:expr, $page:ident, $page_to:ident, $data:expr) => {
        let mut group = $criterion.benchmark_group(concat!($group, "/fresh"));
        let data = $data;
        macro_rules! each {
            ($name:literal, $write:expr) => {
                group.bench_function($name, |bencher| bencher.iter($write));
            };
        }
        each!("sailfish", || sailfish::$page(black_box(&data)));
        each!("bine", || {
            let mut out = Vec::new();
            bine::$page(black_box(&data), &mut out);
            out
        });
        each!("hypertext", || hypertext::$page(black_box(&data)));
        each!("markup", || markup::$page(black_box(&data)));
        each!("maud", || maud::$page(black_box(&data)));
        each!("askama", || askama::$page(black_box(&data)));
        each!("write", || {
            let mut out = String::new();
            write::$page(black_box(&data), &mut out);
            out
        });
        group.finish();

        let mut group = $criterion.benchmark_group(concat!($group, "/reused"));
        macro_rules! each {
            ($name:literal, $new:expr, $write:path) => {
                let mut out = $new;
                group.bench_function($name, |bencher| {
                    bencher.iter(|| {
                        out.clear();
                        $write(black_box(&data), &mut out);
                        black_box(out.as_mut_ptr());
                    });
                });
            };
        }
        each!("sailfish", Buffer::new(), sailfish::$page_to);
        each!("bine", Vec::new(), bine::$page);
        each!("hypertext", String::new(), hypertext::$page_to);
        each!("markup", String::new(), markup::$page_to);
        each!("askama", String::new(), askama::$page_to);
        each!("write", String::new(), write::$page);
        group.finish();
    };
}

fn pages(criterion: &mut Criterion) {
    compare();
    time!("table", criterion, table, table_to, rows());
    time!("teams", criterion, teams, teams_to, league());
}

criterion_group!(benches, pages);
criterion_main!(benches);
