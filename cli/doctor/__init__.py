"""`firstbell doctor`: what stands in Firstbell's way, each finding with what to do about it. Writes nothing."""
