//! Changes of a tree at the elements that match a selector.

use alloc::vec::Vec;
use core::{iter, mem};

use super::search::Mark;
use super::selector::{AsSelector, SelectorError};
use super::{Element, Node, Tree, TreeError};

/// The position of inserted nodes relative to an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Before the element.
    Before,
    /// Inside the element, before its first child.
    First,
    /// Inside the element, after its last child.
    Last,
    /// After the element.
    After,
}

/// Changes by selector, as in [`find`](Tree::find). Shared elements are copied when they or their
/// descendants change.
impl Tree {
    /// Changes each matching element, from last to first and descendants before ancestors. Returns
    /// the number of matches.
    ///
    /// # Errors
    ///
    /// The selector's syntax error, or the first error of `change`; elements after it stay
    /// unchanged.
    pub fn change(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        mut change: impl FnMut(&mut Element) -> Result<(), TreeError>,
    ) -> Result<usize, TreeError> {
        let mut outcome = Ok(());
        let count = self.edit(selector, |siblings, place| {
            if let Some(element) = siblings[place].as_element_mut()
                && outcome.is_ok()
            {
                outcome = change(element);
            }
        })?;
        outcome.map(|()| count)
    }

    /// Inserts `nodes` at each matching element. Returns the number of matches.
    ///
    /// # Errors
    ///
    /// The selector's syntax error and its position. The other methods return the same error.
    pub fn insert(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        place: Place,
        nodes: impl Into<Self>,
    ) -> Result<usize, SelectorError> {
        let nodes = nodes.into();
        self.edit(selector, |siblings, at| {
            let (into, at) = match place {
                Place::Before => (siblings, at),
                Place::After => (siblings, at + 1),
                Place::First | Place::Last => {
                    let Some(element) = siblings[at].as_element_mut() else { return };
                    let at = if place == Place::First { 0 } else { element.children().len() };
                    (element.children_mut(), at)
                }
            };
            into.splice(at..at, nodes.roots().iter().cloned());
        })
    }

    /// Replaces each matching element and its content by `nodes`. Returns the number of matches.
    pub fn replace(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        nodes: impl Into<Self>,
    ) -> Result<usize, SelectorError> {
        let nodes = nodes.into();
        self.edit(selector, |siblings, place| {
            siblings.splice(place..=place, nodes.roots().iter().cloned());
        })
    }

    /// Removes each matching element and its content. Returns the number of matches.
    pub fn remove(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<usize, SelectorError> {
        self.replace(selector, Self::new())
    }

    /// Calls `act` for each matching element with its siblings and its index among them. The order
    /// is last to first, and descendants before ancestors, so that no call invalidates a later
    /// index.
    fn edit(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        mut act: impl FnMut(&mut Vec<Node>, usize),
    ) -> Result<usize, SelectorError> {
        let marks = self.marks(selector)?;
        // The ancestors of the current element, moved out of their places while they are open.
        let mut open: Vec<(usize, Element)> = Vec::new();
        for (index, mark) in marks.iter().enumerate().rev() {
            let opened = open.pop_if(|(opened, _)| *opened == index);
            if opened.is_none() {
                self.open(&marks, mark.outer, &mut open);
            }
            let siblings = self.innermost(&mut open);
            if let Some((_, element)) = opened {
                siblings[mark.place] = element.into();
            }
            if mark.is_match {
                act(siblings, mark.place);
            }
        }
        Ok(marks.iter().filter(|mark| mark.is_match).count())
    }

    fn marks(&self, selector: &(impl AsSelector + ?Sized)) -> Result<Vec<Mark>, SelectorError> {
        let mut matches = self.find_all(selector)?;
        let mut marks = Vec::new();
        while matches.next().is_some() {
            matches.mark(&mut marks);
        }
        Ok(marks)
    }

    /// Opens an element and its ancestors that are not yet open.
    fn open(&mut self, marks: &[Mark], target: Option<usize>, open: &mut Vec<(usize, Element)>) {
        let top = open.last().map(|(opened, _)| *opened);
        let up = iter::successors(target, |index| marks[*index].outer);
        let mut closed: Vec<usize> = up.take_while(|index| Some(*index) != top).collect();
        while let Some(index) = closed.pop() {
            let node = &mut self.innermost(open)[marks[index].place];
            // The empty text is a placeholder until the element is put back.
            if let Node::Element(element) = mem::replace(node, Node::text("")) {
                open.push((index, element));
            }
        }
    }

    fn innermost<'a>(&'a mut self, open: &'a mut [(usize, Element)]) -> &'a mut Vec<Node> {
        match open.last_mut() {
            Some((_, element)) => element.children_mut(),
            None => self.roots_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    fn element(name: &'static str, children: impl IntoIterator<Item = Node>) -> Node {
        let mut element = Element::new(name).unwrap();
        element.children_mut().extend(children);
        element.into()
    }

    fn list() -> Tree {
        let item = |text: &'static str| element("li", [text.into()]);
        Tree::from(element("ul", [item("a"), element("li", [element("ul", [item("b")])])]))
    }

    #[test]
    fn inserts_at_each_place() {
        for (place, expected) in [
            (Place::Before, "-<ul><li>a</li><li>-<ul><li>b</li></ul></li></ul>"),
            (Place::First, "<ul>-<li>a</li><li><ul>-<li>b</li></ul></li></ul>"),
            (Place::Last, "<ul><li>a</li><li><ul><li>b</li>-</ul></li>-</ul>"),
            (Place::After, "<ul><li>a</li><li><ul><li>b</li></ul>-</li></ul>-"),
        ] {
            let mut tree = list();
            assert_eq!(tree.insert("ul", place, "-").unwrap(), 2);
            assert_eq!(tree.to_string(), expected);
        }
    }

    #[test]
    fn replaces_and_removes_whole_subtrees() {
        let check = |mut tree: Tree, selector: &str, count, expected: &str| {
            assert_eq!(
                tree.replace(selector, [Node::text("x"), "y".into()].into_iter().collect::<Tree>()),
                Ok(count)
            );
            assert_eq!(tree.text(), expected);
        };
        check(list(), "li", 3, "xyxy");
        check(list(), "ul", 2, "xy");
        check(list(), "li li", 1, "axy");
        check(list(), "p", 0, "ab");
        let mut tree = list();
        assert_eq!(tree.remove("ul ul"), Ok(1));
        assert_eq!(
            tree,
            Tree::from(element("ul", [element("li", ["a".into()]), element("li", [])]))
        );
        assert!(tree.remove("").is_err());
    }

    #[test]
    fn changes_every_match_but_no_clone() {
        let mut tree = list();
        let before = tree.clone();
        let count = tree.change("li", |item| {
            item.push("!");
            Ok(())
        });
        let count = count.unwrap();
        assert_eq!((count, &*tree.text(), &*before.text()), (3, "a!b!!", "ab"));
        assert_eq!(tree.find("ul ul li").unwrap().unwrap().text(), "b!");
        assert!(tree.find("p").unwrap().is_none());
        assert_eq!(tree.change("li", |item| item.set_attribute("id", 7)), Ok(3));
        let refused = tree.change("li", |item| item.set_attribute("a b", 8));
        assert_eq!(refused, Err(TreeError::AttributeName("a b".into())));
        assert!(matches!(tree.change("", |_| Ok(())), Err(TreeError::Selector(_))));
        assert_eq!(tree.find_all("[id='7']").unwrap().count(), 3);
    }

    /// Regression: a path kept per matching element made a change of a deep tree quadratic in its
    /// depth.
    #[test]
    fn changes_every_level_of_a_deep_tree() {
        let mut tree = Tree::from("x");
        for _ in 0..100_000 {
            let inner = tree.roots_mut().pop().unwrap();
            tree = Tree::from(element("i", [inner]));
        }
        let copy = tree.clone();
        assert_eq!(tree.insert("i", Place::First, "y"), Ok(100_000));
        assert_eq!(tree.text().len(), 100_001);
        assert_eq!(tree.remove("i > i"), Ok(99_999));
        assert_eq!((&*tree.text(), &*copy.text()), ("y", "x"));
    }

    fn trees() -> impl Strategy<Value = Node> {
        let leaf =
            prop_oneof![Just(Node::text("x")), Just(element("a", [])), Just(element("b", []))];
        leaf.prop_recursive(6, 40, 4, |inner| {
            let children = prop::collection::vec(inner, 0..4);
            (prop::bool::ANY, children)
                .prop_map(|(is_a, children)| element(if is_a { "a" } else { "b" }, children))
        })
    }

    /// A recursive reference implementation without sharing.
    fn replaced(nodes: &[Node], place: Option<Place>) -> Vec<Node> {
        let mut done = Vec::new();
        for node in nodes {
            let Node::Element(before) = node else {
                done.push(node.clone());
                continue;
            };
            let mut element = before.clone();
            *element.children_mut() = replaced(before.children(), place);
            let is_match = before.name() == "a";
            match place {
                Some(Place::First) if is_match => element.children_mut().insert(0, "!".into()),
                Some(Place::Last) if is_match => element.push("!"),
                _ => {}
            }
            match place {
                None if is_match => done.push("!".into()),
                Some(Place::Before) if is_match => done.extend(["!".into(), element.into()]),
                Some(Place::After) if is_match => done.extend([element.into(), "!".into()]),
                _ => done.push(element.into()),
            }
        }
        done
    }

    const PLACES: [Option<Place>; 5] =
        [None, Some(Place::Before), Some(Place::First), Some(Place::Last), Some(Place::After)];

    proptest! {
        #[test]
        fn edits_agree_with_the_reference(
            roots in prop::collection::vec(trees(), 0..4),
            place in prop::sample::select(PLACES.as_slice()),
        ) {
            let original = Tree::from(roots);
            let before = original.to_string();
            let mut tree = original.clone();
            match place {
                None => tree.replace("a", "!").unwrap(),
                Some(place) => tree.insert("a", place, "!").unwrap(),
            };
            prop_assert_eq!(tree, Tree::from(replaced(original.roots(), place)));
            prop_assert_eq!(original.to_string(), before);
        }
    }
}
