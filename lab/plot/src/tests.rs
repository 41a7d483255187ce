use crate::axis::{FAR, FAR_BESIDE, levels, range, runs, short, span};
use crate::cover::{self, Cover, covers};
use crate::*;

fn sample() -> Figure {
    let wave = |k: f64| {
        (0..200).map(|n| (f64::from(n) / 10.0, 900.0 * (1.0 + (f64::from(n) * k).sin()))).collect()
    };
    let mut panel = Panel::new("kbit/s").level(2_000.0, "line rate");
    for (n, name) in
        ["CS0", "CS1", "CS2", "CS3", "CS4", "EF", "AF41", "LE", "VA", "AF11"].iter().enumerate()
    {
        panel = panel.series(Series::new(*name, Shape::Line, wave(0.05 + n as f64 / 100.0)));
    }
    let depth = (0..20).map(|n| (f64::from(n), f64::from(n % 7))).collect();
    let queue = Panel::new("packets waiting").series(Series::new("CS0", Shape::Step, depth));
    Figure::new("Throughput by code point").panel(panel).panel(queue).marks(vec![
        Mark { at: 3.0, label: "flash 1 begins".into(), colour: Some(3) },
        Mark { at: 9.5, label: "flash 1 ends".into(), colour: Some(3) },
        Mark { at: 15.0, label: "routine ends".into(), colour: None },
    ])
}

#[test]
fn a_figure_is_an_svg_and_a_png_with_all_its_texts() {
    let svg = sample().svg().unwrap();
    for word in [
        "Throughput by code point",
        "flash 1 beg",
        "CS3",
        "line rate",
        "seconds",
        "packets waiting",
    ] {
        assert!(svg.contains(word), "{word}");
    }
    let octets = sample().png().unwrap();
    let decoder = png::Decoder::new(std::io::Cursor::new(&octets));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (2_400, 1_760));
    let white = pixels.as_chunks::<3>().0.iter().filter(|rgb| **rgb == [255; 3]).count();
    let all = pixels.len() / 3;
    assert!(white > all / 2 && white < all * 99 / 100, "light, and drawn on: {white} of {all}");
    if let Ok(directory) = std::env::var("PLOT_SAMPLES") {
        std::fs::write(format!("{directory}/sample.svg"), svg).unwrap();
        std::fs::write(format!("{directory}/sample.png"), octets).unwrap();
    }
}

#[test]
fn what_is_no_number_interrupts_a_line_and_moves_no_axis() {
    let series = Series::new(
        "x",
        Shape::Line,
        vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY), (f64::NAN, 9.0)],
    );
    assert_eq!(runs(&series), [vec![(0.0, 1.0)], vec![(2.0, 3.0)]]);
    let figure = Figure::new("").panel(Panel::new("").series(series));
    assert_eq!(span(&figure), (0.0, 2.0));
    let (low, high) = range(&figure.panels[0]);
    assert!(low == 0.0 && (3.0..4.0).contains(&high));
    assert!(figure.svg().is_ok());
}

#[test]
fn nothing_at_all_is_drawn_all_the_same() {
    let empty = Figure::new("nothing").panel(Panel::new("kbit/s"));
    assert!(empty.svg().unwrap().contains("nothing"));
    let constant = Series::new("zero", Shape::Step, vec![(5.0, 0.0)]);
    assert!(Figure::new("").panel(Panel::new("").series(constant)).png().is_ok());
}

#[test]
fn of_many_points_the_extremes_are_kept() {
    let mut points: Vec<(f64, f64)> = (0..100_000).map(|n| (f64::from(n), 1.0)).collect();
    points[77_777].1 = 99.0;
    points[12_345].1 = -5.0;
    let kept = runs(&Series::new("", Shape::Line, points)).remove(0);
    assert!(kept.len() <= MAX_POINTS, "{}", kept.len());
    assert!(kept.contains(&(77_777.0, 99.0)) && kept.contains(&(12_345.0, -5.0)));
    assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
}

#[test]
fn a_size_or_a_number_of_panels_that_makes_no_sense_is_refused() {
    assert!(matches!(Figure::new("").svg(), Err(Error::Size(..) | Error::Panels(0))));
    let mut figure = Figure::new("").panel(Panel::new(""));
    figure.size = (20_000, 500);
    assert!(matches!(figure.png(), Err(Error::Size(20_000, 500))));
}

#[test]
fn names_are_text_and_no_markup() {
    let evil = Series::new("<script>&\"", Shape::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
    let svg = Figure::new("a<b").panel(Panel::new("").series(evil)).svg().unwrap();
    assert!(!svg.contains("<script>") && !svg.contains("a<b"), "{svg}");
}

#[test]
fn numbers_of_axes_are_short() {
    let shown = [0.0, 1.0, 0.25, 9_500.0, 12_000.0, 2_500_000.0, -0.0001, 3e9].map(|n| short(&n));
    assert_eq!(shown, ["0", "1", "0.25", "9500", "12k", "2.5M", "0", "3G"]);
}

#[test]
fn an_axis_may_have_labels_of_its_own() {
    let series = Series::new(
        "checkpoint 2 KiB, content throughput",
        Shape::Dotted,
        vec![(0.0, 100.0), (1.0, 400.0), (2.0, 460.0)],
    );
    let mut figure = Figure::new("Sweep").panel(Panel::new("kbit/s").series(series));
    figure.ticks = vec![(0.0, "one".into()), (1.0, "three".into()), (9.0, "beyond".into())];
    figure.time_label = "window".into();
    let svg = figure.svg().unwrap();
    assert!(svg.contains("one") && svg.contains("three") && !svg.contains("beyond"));
    assert!(!svg.contains("\n0.5\n") && svg.contains("\n100\n"), "no round numbers beside them");
    assert_eq!(svg.matches("<circle").count(), 3);
    assert!(svg.contains("checkpoint 2 KiB, content through…"), "{svg}");
    if let Ok(directory) = std::env::var("PLOT_SAMPLES") {
        std::fs::write(format!("{directory}/sweep.png"), figure.png().unwrap()).unwrap();
    }
}

/// A panel with a line from 0 to this value.
fn up_to(highest: f64) -> Panel {
    Panel::new("kbit/s").series(Series::new("x", Shape::Line, vec![(0.0, 0.0), (1.0, highest)]))
}

#[test]
fn a_level_far_above_stretches_no_axis_and_is_named() {
    let near = up_to(460.0).level(460.0 * FAR, "line 690 kbit/s");
    assert!(range(&near).1 > 690.0);
    let far = up_to(460.0).level(10_000.0, "line 10,000 kbit/s");
    let (low, high) = range(&far);
    assert!(low == 0.0 && (500.0..560.0).contains(&high), "with room for the name: {high}");
    let svg = Figure::new("").panel(far).svg().unwrap();
    assert!(
        svg.contains("line 10,000 kbit/s") && svg.contains("<polygon"),
        "an arrow and its name"
    );
    // Where there is nothing else, it is the axis; where nothing came, it is not.
    assert!(range(&Panel::new("").level(10.0, "line")).1 > 10.0);
    assert_eq!(range(&up_to(0.0).level(10.0, "line")), (0.0, 1.0));
    assert!(range(&up_to(1.0).level(f64::NAN, "line")).1 < 1.1);
}

#[test]
fn values_that_were_printed_stay_in_the_picture_until_nothing_else_would_be_seen() {
    let beside = |value: f64| {
        let mut panel = up_to(10.0);
        panel.levels = vec![Level { value, name: "printed".into(), colour: Some(0) }];
        let is_far: Vec<bool> = levels(&panel).map(|level| level.is_far).collect();
        let svg = Figure::new("").panel(panel.clone()).svg().unwrap();
        assert!(svg.contains("printed"));
        (is_far, range(&panel).1 > value)
    };
    assert_eq!(beside(10.0 * FAR_BESIDE), (vec![false], true));
    assert_eq!(beside(10.1 * FAR_BESIDE), (vec![true], false));
}

#[test]
fn a_line_that_is_covered_shows_below_and_the_same_ones_are_named() {
    let wave: Vec<(f64, f64)> = (0..100).map(|n| (f64::from(n), 5.0 + f64::from(n % 10))).collect();
    let moved = |by: f64, of: &[(f64, f64)]| of.iter().map(|(x, y)| (*x, y + by)).collect();
    let line = |name: &str, points| Series::new(name, Shape::Line, points);
    let half = wave.iter().take(50).copied().collect();
    let panel = Panel::new("")
        .series(line("first", wave.clone()))
        .series(line("away", moved(30.0, &wave)))
        .series(line("half", half))
        .series(line("same", wave.clone()));
    let covers = covers(&panel);
    let below: Vec<u32> = covers.iter().map(|cover| cover.below).collect();
    assert_eq!(below, [2, 0, 1, 0]);
    let names: Vec<String> =
        (0..4).map(|place| cover::name(&panel, place, &covers[place])).collect();
    assert_eq!(names, ["first", "away", "half", "same = first"]);
    let svg = Figure::new("").panel(panel).svg().unwrap();
    assert!(svg.contains("same = first"));
    assert!(svg.contains("stroke-width=\"8\""), "the lowest is the widest");
}

#[test]
fn lines_that_lie_along_the_axis_for_a_time_do_not_cover_each_other() {
    let turn = |from: i32, to: i32| -> Vec<(f64, f64)> {
        let value = |n: i32| if (from..to).contains(&n) { 9.0 } else { 0.0 };
        (0..100).map(|n| (f64::from(n), value(n))).collect()
    };
    for shape in [Shape::Line, Shape::Step] {
        let panel = Panel::new("")
            .series(Series::new("a", shape, turn(0, 20)))
            .series(Series::new("b", shape, turn(50, 70)))
            .series(Series::new("nothing", shape, turn(0, 0)))
            .series(Series::new("none", shape, Vec::new()))
            .series(Series::new("nothing either", shape, turn(0, 0)));
        let covered: Vec<u32> = covers(&panel).iter().map(|cover| cover.below).collect();
        assert_eq!(covered, [0; 5]);
        assert_eq!(
            covers(&panel)[4].same_as,
            Some(2),
            "of two that never leave it the legend has it"
        );
    }
}

#[test]
fn rings_are_empty_and_lie_beside_what_they_are_of() {
    let points = vec![(0.0, 1.0), (1.0, 2.0)];
    let panel = Panel::new("")
        .series(Series::new("ours", Shape::Dots, points.clone()))
        .series(Series::new("printed", Shape::Rings, points).colour(0));
    let same = |cover: &Cover| (cover.below, cover.same_as);
    let covers: Vec<_> = covers(&panel).iter().map(same).collect();
    assert_eq!(covers, [(0, None), (0, None)]);
    let svg = Figure::new("").panel(panel).svg().unwrap();
    assert_eq!(svg.matches("fill=\"none\" stroke=\"#0072B2\"").count(), 3, "two and the legend's");
}
