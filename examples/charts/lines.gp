# A line for each series, or points alone where there are few. lines, points: their files, whose names are the series',
# behind a dot and with _ for spaces; what: is on the x axis.
set title heading font ",17"
set ylabel axis
set xlabel what
set yrange [0 : *]
set key top left reverse Left samplen 2 textcolor rgb text noenhanced
colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #8a8a8a"
shapes = "7 5 9 13 11 15 3"
named(file) = system("echo '" . file . "' | sed 's/.*[.]//' | tr _ ' '")
all_lines = "for [i = 1 : words(lines)] word(lines, i) using 1:2 with linespoints linewidth 2 pointsize 0.9 " . \
  "pointtype int(word(shapes, (i - 1) % 7 + 1)) linecolor rgb word(colours, (i - 1) % 7 + 1) " . \
  "title named(word(lines, i))"
all_points = "for [i = 1 : words(points)] word(points, i) using 1:2 with points linewidth 2 pointsize 1.6 " . \
  "pointtype 2 * i + 2 linecolor rgb word(colours, (words(lines) + i - 1) % 7 + 1) title named(word(points, i))"
if (words(lines) && words(points)) {
  plot @all_lines, @all_points
} else {
  if (words(lines)) { plot @all_lines } else { plot @all_points }
}
