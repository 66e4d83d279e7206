//! Tests of the tree against a plain map, including older versions that are still referenced.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    /// Removes the entry at this position, if it exists.
    RemoveAt(usize),
    /// Keeps the current version until the end.
    Keep,
    /// An older version follows the current one and replaces it.
    Swap,
}

/// A tree, an older version, and the keys by which the two may differ.
#[derive(Default)]
struct VersionPair<const KEY: usize> {
    tree: Tree<KEY>,
    spare: Tree<KEY>,
    changed: Vec<Vec<u8>>,
}

impl<const KEY: usize> VersionPair<KEY> {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.tree.insert(key, value);
        self.changed.push(key.to_vec());
    }

    fn remove(&mut self, key: &[u8]) {
        self.tree.remove(key);
        self.changed.push(key.to_vec());
    }

    fn swap(&mut self) {
        let Self { tree, spare, changed } = self;
        changed.drain(..).for_each(|key| spare.follow(tree, &key));
        std::mem::swap(tree, spare);
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys of four bytes: a few, or many with common prefixes.
fn fixed_key() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        (0_u32..600).prop_map(|number| number.to_be_bytes().to_vec()),
        any::<[u8; 4]>().prop_map(|bytes| bytes.to_vec()),
    ]
    .boxed()
}

/// Keys of any length, often prefixes of each other.
fn long_key() -> BoxedStrategy<Vec<u8>> {
    let alike = prop::collection::vec(0_u8..3, 0..30);
    let key = (any::<bool>(), alike).prop_map(|(is_long, rest)| {
        let start: &[u8] = if is_long { &[7; 40] } else { &[] };
        [start, &rest].concat()
    });
    key.boxed()
}

/// Values, including a few that fill a leaf.
fn fixed_value() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        20 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0_usize..9000).prop_map(|length| vec![1; length]),
    ]
    .boxed()
}

fn steps(
    key: BoxedStrategy<Vec<u8>>,
    value: BoxedStrategy<Vec<u8>>,
) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        60 => (key.clone(), value).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => key.prop_map(Step::Remove),
        26 => (0_usize..400).prop_map(Step::RemoveAt),
        1 => Just(Step::Keep),
        9 => Just(Step::Swap),
    ];
    prop::collection::vec(step, 0..600)
}

/// Applies the steps to a tree and a map, and compares all kept versions.
fn compare<const KEY: usize>(steps: Vec<Step>, asked: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let (mut versions, mut model) = (VersionPair::<KEY>::default(), Model::new());
    let mut kept_versions = Vec::new();
    for step in steps {
        match step {
            Step::Insert(key, value) => {
                versions.insert(&key, &value);
                model.insert(key, value);
            }
            Step::Remove(key) => {
                versions.remove(&key);
                model.remove(&key);
            }
            Step::RemoveAt(position) => {
                if let Some(key) = model.keys().nth(position).cloned() {
                    versions.remove(&key);
                    model.remove(&key);
                }
            }
            Step::Keep => kept_versions.push((versions.tree.clone(), model.clone())),
            Step::Swap => versions.swap(),
        }
    }
    kept_versions.push((versions.tree.clone(), model.clone()));
    versions.swap();
    kept_versions.push((versions.tree, model));
    for (tree, model) in &kept_versions {
        check_invariants(&tree.root, None, None);
        prop_assert_eq!(tree.len(), model.len());
        for key in asked.iter().chain(model.keys()) {
            prop_assert_eq!(tree.get(key), model.get(key).map(Vec::as_slice));
        }
        assert_same(&tree.range(None, None), &model.iter())?;
        for pair in asked.windows(2) {
            let (from, until) = ((&pair[0]).min(&pair[1]), (&pair[0]).max(&pair[1]));
            assert_same(
                &tree.range(Some(from), Some(until)),
                &model.range(from.clone()..until.clone()),
            )?;
            assert_same(&tree.range(Some(from), None), &model.range(from.clone()..))?;
            assert_same(&tree.range(None, Some(until)), &model.range(..until.clone()))?;
        }
    }
    Ok(())
}

/// Iterates forwards, backwards, and alternating.
fn assert_same<'m, const KEY: usize>(
    range: &Range<'m, KEY>,
    model: &(impl DoubleEndedIterator<Item = (&'m Vec<u8>, &'m Vec<u8>)> + Clone),
) -> Result<(), TestCaseError> {
    let model = || model.clone().map(|(key, value)| (&key[..], &value[..]));
    prop_assert!(range.clone().eq(model()));
    prop_assert!(range.clone().rev().eq(model().rev()));
    let (mut range, mut model) = (range.clone(), model());
    loop {
        let next = range.next();
        prop_assert_eq!(next, model.next());
        let back = range.next_back();
        prop_assert_eq!(back, model.next_back());
        if next.is_none() && back.is_none() {
            return Ok(());
        }
    }
}

/// Checks the invariants of a node, and returns its height.
fn check_invariants<const KEY: usize>(
    node: &Node<KEY>,
    from: Option<&[u8]>,
    until: Option<&[u8]>,
) -> usize {
    match node {
        Node::Leaf(leaf) => {
            assert!(leaf.len() < MAX_ENTRIES);
            let keys: Vec<&[u8]> = (0..leaf.len()).map(|position| leaf.key(position)).collect();
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(keys.iter().all(|key| from.is_none_or(|from| *key >= from)));
            assert!(keys.iter().all(|key| until.is_none_or(|until| *key < until)));
            0
        }
        Node::InnerNode(inner) => {
            let InnerNode { separators, children } = &**inner;
            assert!(separators.len() < MAX_ENTRIES && children.len() == separators.len() + 1);
            let bound =
                |position: usize| (position < separators.len()).then(|| separators.key(position));
            let heights = children.iter().enumerate().map(|(position, child)| {
                let before = position.checked_sub(1).and_then(bound);
                check_invariants(child, before.or(from), bound(position).or(until))
            });
            let heights: Vec<usize> = heights.collect();
            assert!(heights.windows(2).all(|pair| pair[0] == pair[1]));
            heights[0] + 1
        }
    }
}

fn leaves<const KEY: usize>(node: &Node<KEY>) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::InnerNode(inner) => inner.children.iter().map(leaves).sum(),
    }
}

#[test]
fn fills_leaves_for_ascending_keys_even_with_older_versions() {
    let mut tree = Tree::<4>::default();
    for number in 0..3100_u32 {
        let _older = tree.clone();
        tree.insert(&number.to_be_bytes(), b"value");
    }
    assert_eq!(leaves(&tree.root), 3100_usize.div_ceil(MAX_ENTRIES - 1));
    check_invariants(&tree.root, None, None);
}

/// A tree of three levels, which has inner nodes below its root.
#[test]
fn iterates_from_both_ends_of_a_high_tree() {
    let mut tree = Tree::<4>::default();
    let count = 3 * (MAX_ENTRIES as u32).pow(2);
    for number in 0..count {
        tree.insert(&number.to_be_bytes(), &[]);
    }
    assert!(inner_nodes(&tree.root) > 2);
    let number = |(key, _): (&[u8], &[u8])| u32::from_be_bytes(key.try_into().unwrap());
    assert!(tree.range(None, None).map(number).eq(0..count));
    assert!(tree.range(None, None).rev().map(number).eq((0..count).rev()));
    for (from, until) in [(0_u32, count), (1, 2), (500, 2500), (31, 62), (961, 962), (7, 7)] {
        let (first, last) = (from.to_be_bytes(), until.to_be_bytes());
        let range = || tree.range(Some(&first), Some(&last));
        assert!(range().map(number).eq(from..until), "{from} {until}");
        assert!(range().rev().map(number).eq((from..until).rev()), "{from} {until}");
        // Alternating, until both ends meet.
        let (mut range, mut found) = (range(), Vec::new());
        while let Some(next) = range.next() {
            found.push(number(next));
            found.extend(range.next_back().map(number));
        }
        found.sort_unstable();
        assert!(found.into_iter().eq(from..until), "{from} {until}");
    }
}

fn inner_nodes<const KEY: usize>(node: &Node<KEY>) -> usize {
    match node {
        Node::Leaf(_) => 0,
        Node::InnerNode(inner) => 1 + inner.children.iter().map(inner_nodes).sum::<usize>(),
    }
}

#[test]
fn fills_inner_nodes() {
    let mut ascending = Tree::<4>::default();
    let mut mixed = Tree::<4>::default();
    for number in 0..60_000_u32 {
        ascending.insert(&number.to_be_bytes(), &[]);
        mixed.insert(&number.wrapping_mul(2_654_435_761).to_be_bytes(), &[]);
    }
    // Of ascending keys, a split leaves all children but two. Otherwise it leaves half of them.
    for (tree, children) in [(&ascending, MAX_ENTRIES - 2), (&mixed, MAX_ENTRIES / 2)] {
        check_invariants(&tree.root, None, None);
        let (inner, leaves) = (inner_nodes(&tree.root), leaves(&tree.root));
        // A tree has one node per level that is not full.
        assert!(inner <= leaves / (children - 1) + 4, "{inner} inner nodes, {leaves} leaves");
    }
}

#[test]
fn shrinks_after_removals() {
    let mut tree = Tree::<4>::default();
    let keys = || (0..20_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes());
    keys().for_each(|key| tree.insert(&key, &[]));
    check_invariants(&tree.root, None, None);
    for (count, key) in keys().enumerate() {
        if count % 100 != 0 {
            tree.remove(&key);
        }
    }
    check_invariants(&tree.root, None, None);
    assert_eq!(tree.len(), 200);
    // A leaf has a dozen entries on average.
    assert!(leaves(&tree.root) <= 200 / 12, "{} leaves", leaves(&tree.root));
    keys().for_each(|key| tree.remove(&key));
    assert_eq!((tree.len(), leaves(&tree.root), tree.range(None, None).count()), (0, 1, 0));
}

/// A height at which inner nodes split and merge, which takes more steps than a property test
/// generates.
#[test]
fn high_tree_equals_a_map_in_every_version() {
    let (mut versions, mut model) = (VersionPair::<4>::default(), Model::new());
    let mut kept_versions = Vec::new();
    let mut draw = 1_u32;
    for step in 0..60_000_u32 {
        // Xorshift (Marsaglia 2003).
        draw ^= draw << 13;
        draw ^= draw >> 17;
        draw ^= draw << 5;
        let key = (draw % 40_000).to_be_bytes();
        // The tree grows, and then shrinks.
        if draw >> 16 & 7 < if step < 30_000 { 7 } else { 1 } {
            versions.insert(&key, &step.to_be_bytes());
            model.insert(key.to_vec(), step.to_be_bytes().to_vec());
        } else {
            versions.remove(&key);
            model.remove(&key[..]);
        }
        // Swaps the versions after each step in even phases and rarely in odd ones.
        if draw.is_multiple_of(if step / 2000 % 2 == 0 { 1 } else { 50 }) {
            versions.swap();
        }
        if step % 6000 == 5999 {
            kept_versions.push((versions.tree.clone(), model.clone()));
        }
    }
    for (tree, model) in &kept_versions {
        check_invariants(&tree.root, None, None);
        assert_eq!(tree.len(), model.len());
        assert_same(&tree.range(None, None), &model.iter()).unwrap();
        assert!(model.iter().all(|(key, value)| tree.get(key) == Some(value)));
    }
}

proptest! {
    #[test]
    fn row_tree_equals_a_map_in_every_version(
        steps in steps(fixed_key(), fixed_value()), asked in prop::collection::vec(fixed_key(), 0..8)
    ) {
        compare::<4>(steps, &asked)?;
    }

    #[test]
    fn index_tree_equals_a_map_in_every_version(
        steps in steps(long_key(), Just(Vec::new()).boxed()),
        asked in prop::collection::vec(long_key(), 0..8)
    ) {
        compare::<{ usize::MAX }>(steps, &asked)?;
    }
}
