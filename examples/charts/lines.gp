# A line for each series. tables: their files, names: the words that tell them, with _ for spaces; ticks: on the x axis.
set title heading font ",17"
set ylabel axis
set xlabel what
set yrange [0 : *]
set key top left reverse Left samplen 2 textcolor rgb text
colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #8a8a8a"
shapes = "7 5 9 13 11 15 3"
named(i) = system("echo '" . word(names, i) . "' | tr _ ' '")
plot for [i = 1 : words(tables)] word(tables, i) using 1:2 with linespoints linewidth 2 pointsize 0.9 \
  pointtype int(word(shapes, (i - 1) % 7 + 1)) linecolor rgb word(colours, (i - 1) % 7 + 1) title named(i)
