use crate::axis::{range, runs, short, span};
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
