# Reads charts.txt and one table, and writes what draws it: commands for gnuplot on the standard output, and a file of
# data for each panel into the folder work.
#
#   awk -v name=04_matrix_add -v work=FOLDER -v out=FILE.png -f charts.awk charts.txt 04_matrix_add.csv

function trim(s) { sub(/^ +/, "", s); sub(/ +$/, "", s); return s }
# Without what gnuplot takes for a quote, a command or markup.
function plain(s) { gsub(/['"`\\{}@&~^\t]/, " ", s); return s }
# The two texts of "A | B", whose second part may have bars of its own.
function before_bar(s) { return trim(substr(s, 1, index(s, " | ") - 1)) }
function after_bar(s) { return substr(s, index(s, " | ") + 3) }

function after_space(s) { return substr(s, index(s, " ") + 1) }

function set_option(word, rest) {
  if (word == "title") title = rest
  else if (word == "n") counted = rest
  else if (word == "scale") one_scale = rest == "shared"
  else if (word == "gpu") gpu_column = rest
  else if (word == "cpu") cpu_column = rest
  else if (word == "kind") kind = rest
  else if (word == "x") { x_name = before_bar(rest); x_ticks = after_bar(rest) }
  else if (word == "note") { split(rest, part, " "); note_column = part[1]; note_unit = after_space(rest) }
  else if (word == "strip") strip = rest
  else if (word == "remark") remark_regex = rest
  else if (word == "label") labels[before_bar(rest)] = after_bar(rest)
  else if (word == "panel") {
    panel_title[++panels] = before_bar(rest)
    panel_regex[panels] = after_bar(rest)
    panel_kind[panels] = kind
  }
}

function label_of(variant) {
  if (variant in labels) return labels[variant]
  if (strip != "") gsub(strip, "", variant)
  return variant in labels ? labels[variant] : variant
}

BEGIN { FS = ","; kind = "bars"; gpu_column = "rate"; cpu_column = "requests"; title = name }

FILENAME ~ /charts\.txt$/ {
  if (/^lesson /) here = substr($0, 8) == name
  else if (here && !/^#/ && NF) set_option(substr($0, 1, index($0, " ") - 1), after_space($0))
  next
}

/^#/ {
  if (/, sm_[0-9]+,/ && device == "") { device = substr($0, 3); sub(/, sm_.*/, "", device) }
  if (remark_regex != "" && $0 ~ remark_regex && !/, sm_[0-9]+,/) remark = substr($0, 3)
  # What a rule chooses: "series  rule  N threads", two spaces or more between them.
  if (split(substr($0, 3), part, /  +/) >= 3 && part[3] ~ /^[0-9]+ threads/) {
    choice = part[1] " " part[3] + 0
    chosen[choice] = (chosen[choice] == "" ? "" : chosen[choice] ", ") part[2]
  }
  next
}

!columns { for (columns = 1; columns <= NF; columns++) column[$columns] = columns; next }
{ rows++; n = $2; variant[rows] = $3; for (c in column) value[rows, c] = $column[c] }

function axis_of(wanted) {
  if (wanted == "rate") return plain(value[1, "unit"]) ", higher is better"
  if (wanted == "time_us") return "µs, lower is better"
  if (wanted == "occupancy") return "occupancy in %, higher is better"
  gsub(/_/, " ", wanted)
  return wanted ", lower is better"
}

function number(v) { return v >= 1000 ? sprintf("%.0f", v) : sprintf("%.3g", v) }

# Rows of a panel into its file: label, value, 1 for gpukit's own, the text beside it; or, for lines, x and value. Their
# number; longest becomes that of the longest label.
function write_panel(p, file,   r, count, text, x, from) {
  for (r = 1; r <= rows; r++) {
    if (value[r, wanted] <= 0 || variant[r] !~ panel_regex[p]) continue
    count++
    if (!least || value[r, wanted] < least) least = value[r, wanted] + 0
    if (value[r, wanted] > most) most = value[r, wanted] + 0
    if (panel_kind[p] == "line" || panel_kind[p] == "points") {
      match(variant[r], /[0-9]+/)
      x = substr(variant[r], RSTART, RLENGTH)
      printf "%s\t%s\t%s\n", x, value[r, wanted], "\"" plain(chosen[variant[r]]) "\"" | ("sort -g >" file)
      continue
    }
    text = number(value[r, wanted])
    if (note_column != wanted && (r, note_column) in value)
      text = text (value[r, note_column] > 0 ? "   " number(value[r, note_column]) " " note_unit : "")
    label = plain(label_of(variant[r]))
    if (length(label) > longest) longest = length(label)
    printf "\"%s\"\t%s\t%d\t\"%s\"\n", label, value[r, wanted], variant[r] ~ /^(gk_|library)/, text > file
  }
  if (count) close(panel_kind[p] ~ /line|points/ ? "sort -g >" file : file)
  return count
}

# With a comma before each three digits.
function grouped(v) {
  while (match(v, /[0-9][0-9][0-9][0-9]($|,)/)) v = substr(v, 1, RSTART) "," substr(v, RSTART + 1)
  return v
}

END {
  timed = ("time_us" in column)
  wanted = timed ? gpu_column : cpu_column
  if (wanted == "none" || !(wanted in column)) exit
  if (!panels) { panels = 1; panel_title[1] = ""; panel_regex[1] = "."; panel_kind[1] = kind }
  top = head = remark == "" ? 84 : 108
  for (p = 1; p <= panels; p++) {
    count[p] = write_panel(p, work "/panel." p)
    if (!count[p]) continue
    flat = panel_kind[p] == "bars" || panel_kind[p] == "dots"
    high[p] = flat ? 25 * count[p] + 8 : 260
    begin[p] = top + (panel_title[p] == "" ? 0 : 34)
    top = begin[p] + high[p] + (flat ? 62 : 70)
  }
  if (top == head) exit
  height = top + 4
  width = 1000
  left = longest ? 34 + 7.9 * longest : 110
  where = timed ? plain(device) : "counted on the CPU stand-in"
  printf "out = '%s'\nload '../../tests/bench/plots/style.gp'\n", out
  printf "height = %d\nwidth = %d\nlongest_note = %d\n", height, width, note_column != "" && note_column != wanted
  printf "least = %g\nmost = %g\n", one_scale ? least : 0, one_scale ? most : 0
  printf "heading = \"%s\"\n", plain(title)
  printf "subheading = \"%s; n = %s%s\"\n", where, grouped(n), counted == "" ? "" : " " counted
  printf "remark = \"%s\"\nload 'begin.gp'\n", plain(remark)
  for (p = 1; p <= panels; p++) {
    if (!count[p]) continue
    printf "table = '%s/panel.%d'\npanel = \"%s\"\n", work, p, plain(panel_title[p])
    printf "kind = '%s'\naxis = \"%s\"\n", panel_kind[p], axis_of(wanted)
    printf "x_name = '%s'\nx_ticks = '%s'\n", plain(x_name), x_ticks
    printf "from_left = %.4f\nfrom_top = %.4f\n", left / width, 1 - begin[p] / height
    printf "from_bottom = %.4f\n", 1 - (begin[p] + high[p]) / height
    printf "load '%s.gp'\n", panel_kind[p] == "line" || panel_kind[p] == "points" ? "lines" : "bars"
  }
  print "unset multiplot"
}
